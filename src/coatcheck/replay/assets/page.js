// Draws the charts of the page; `page.py` prepares the data, and the tables.
"use strict";
const described = JSON.parse(document.getElementById("charts").textContent);
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const cut = (text) => (text.length > 22 ? `${text.slice(0, 10)}…${text.slice(-11)}` : text);
let drawn = [];

function draw() {
  drawn.forEach((chart) => chart.destroy());
  Chart.defaults.color = colour("faint");
  Chart.defaults.borderColor = colour("line");
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.animation = false;
  drawn = described.map((chart) => new Chart(document.getElementById(chart.id), configuration(chart)));
}

function configuration(chart) {
  const values = chart.sideways ? "x" : "y";
  const names = chart.sideways ? "y" : "x";
  const write = chart.percent ? (value) => `${exact.format(value)}%` : (value) => exact.format(value);
  const axis = chart.percent ? (value) => `${value}%` : (value) => compact.format(value);
  return {
    type: "bar",
    data: {
      labels: chart.labels,
      datasets: chart.series.map((one) => ({
        label: one.label,
        data: one.values,
        backgroundColor: one.colours.map(colour),
        borderRadius: 3,
        maxBarThickness: 56,
      })),
    },
    options: {
      indexAxis: names,
      responsive: true,
      maintainAspectRatio: false,
      interaction: { mode: "nearest", axis: names, intersect: false }, // a bar may be too short to point at
      scales: {
        [values]: { beginAtZero: true, ticks: { callback: axis, maxTicksLimit: 6 }, title: { display: true, text: chart.unit } },
        [names]: {
          grid: { display: false },
          ticks: { autoSkip: false, callback: (_, index) => cut(chart.labels[index]) },
          title: { display: Boolean(chart.names), text: chart.names },
        },
      },
      plugins: {
        legend: { display: chart.series.length > 1, position: "bottom", labels: { boxWidth: 14 } },
        tooltip: { callbacks: { label: (item) => `${item.dataset.label}: ${write(item.raw)}` } },
      },
    },
  };
}

draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
