// Draws the charts of the page from the data beside them; each when it comes into view.
(function () {
  "use strict";
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var colours = ["#3b82c4", "#d9822b", "#3f9c54", "#c0504d", "#8b6fc0", "#7f7f7f", "#2aa5a0", "#b5a11f"];
  var charts = new Map();

  function shown(value) {
    if (typeof value !== "number") return "";
    return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
  }

  function series(all, narrow) {
    var out = [];
    all.forEach(function (one, index) {
      var colour = colours[index % colours.length];
      var item = { name: one.name, data: one.points, color: colour, emphasis: { focus: "none" } };
      if (one.style === "bars") {
        item.type = "bar";
      } else if (one.style === "points") {
        item.type = "scatter";
        item.symbolSize = 8;
      } else {
        item.type = "line";
        item.step = one.style === "step" ? "end" : false;
        item.lineStyle = { width: 1.8, type: one.style === "dashed" ? "dashed" : "solid" };
        item.showSymbol = one.points.length <= 40 && one.style === "line";
        item.symbolSize = narrow ? 5 : 6;
      }
      out.push(item);
      // Intervals are strokes of the same name, so that the legend switches both.
      if (one.intervals) {
        var strokes = [];
        one.points.forEach(function (point, at) {
          strokes.push([point[0], one.intervals[at][0]], [point[0], one.intervals[at][1]], [point[0], null]);
        });
        out.push({
          name: one.name, type: "line", data: strokes, color: colour, showSymbol: false, silent: true, connectNulls: false,
          lineStyle: { width: 4, opacity: 0.35 }, tooltip: { show: false }
        });
      }
    });
    return out;
  }

  // Whether zero would take most of the vertical axis.
  function far(all) {
    var values = all.reduce(function (sum, one) { return sum.concat(one.points.map(function (point) { return point[1]; })); }, []);
    return Math.min.apply(null, values) > 0.6 * Math.max.apply(null, values);
  }

  // Whether all positions are whole numbers, so that what lies between means nothing.
  function whole(all) {
    return all.every(function (one) { return one.points.every(function (point) { return point[0] % 1 === 0; }); });
  }

  function option(figure, width) {
    var narrow = width < 520;
    var style = getComputedStyle(document.documentElement);
    var text = style.getPropertyValue("--text").trim();
    var faint = style.getPropertyValue("--faint").trim();
    var line = style.getPropertyValue("--line").trim();
    var axis = {
      type: "value", nameLocation: "middle", nameTextStyle: { color: faint },
      axisLabel: { color: faint, hideOverlap: true }, axisLine: { show: true, lineStyle: { color: faint } },
      splitLine: { lineStyle: { color: line } }
    };
    return {
      animation: false,
      textStyle: { color: text },
      grid: { left: narrow ? 44 : 58, right: 16, top: 58, bottom: 84 },
      legend: { type: "scroll", top: 0, left: 0, width: width - 110, textStyle: { color: text }, pageTextStyle: { color: text } },
      toolbox: {
        top: 0, right: 4, iconStyle: { borderColor: faint },
        feature: { dataZoom: { title: { zoom: "zoom", back: "back" } }, restore: { title: "whole" } }
      },
      tooltip: {
        trigger: "axis", confine: true, backgroundColor: style.getPropertyValue("--back").trim(), borderColor: line,
        textStyle: { color: text, fontSize: 12 },
        formatter: function (items) {
          var seen = {};
          var lines = items.filter(function (item) {
            var first = !seen[item.seriesName];
            seen[item.seriesName] = true;
            return first && item.data && typeof item.data[1] === "number";
          }).map(function (item) { return item.marker + item.seriesName + ": <b>" + shown(item.data[1]) + "</b>"; });
          return items.length ? figure.x + " " + shown(items[0].data[0]) + "<br>" + lines.join("<br>") : "";
        }
      },
      dataZoom: [
        { type: "slider", height: 18, bottom: 8, textStyle: { color: faint }, labelFormatter: shown, borderColor: line },
        { type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: "shift", moveOnMouseWheel: false, preventDefaultMouseMove: false }
      ],
      xAxis: Object.assign({}, axis, { scale: true, minInterval: whole(figure.series) ? 1 : 0, name: figure.x, nameGap: 26 }),
      yAxis: Object.assign({}, axis, { scale: far(figure.series), name: figure.y, nameGap: narrow ? 32 : 42 }),
      series: series(figure.series, narrow)
    };
  }

  function draw(element) {
    var figure = JSON.parse(element.nextElementSibling.textContent);
    var chart = charts.get(element) || echarts.init(element);
    charts.set(element, chart);
    chart.setOption(option(figure, element.clientWidth), true);
  }

  var elements = Array.prototype.slice.call(document.querySelectorAll(".chart"));
  if ("IntersectionObserver" in window) {
    var observer = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (entry.isIntersecting) {
          observer.unobserve(entry.target);
          draw(entry.target);
        }
      });
    }, { rootMargin: "400px" });
    elements.forEach(function (element) { observer.observe(element); });
  } else {
    elements.forEach(draw);
  }
  window.addEventListener("resize", function () {
    charts.forEach(function (chart, element) { chart.resize(); draw(element); });
  });
  dark.addEventListener("change", function () {
    charts.forEach(function (_, element) { draw(element); });
  });
})();
