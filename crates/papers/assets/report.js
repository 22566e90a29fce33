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

  // Rows that the legend takes; about 7 px a letter, and 44 px for its sign.
  function rows(all, width) {
    var used = 0;
    return all.reduce(function (count, one) {
      var wide = one.name.length * 7 + 44;
      used += wide;
      if (used <= width) return count;
      used = wide;
      return count + 1;
    }, 1);
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
      grid: { left: narrow ? 44 : 58, right: 16, top: 14 + 24 * rows(figure.series, width - 16), bottom: 84 },
      legend: { type: "plain", top: 0, left: 0, right: 16, itemGap: 10, textStyle: { color: text } },
      tooltip: {
        trigger: "axis", confine: true, backgroundColor: style.getPropertyValue("--back").trim(), borderColor: line,
        textStyle: { color: text, fontSize: 12 },
        formatter: function (items) {
          var seen = {};
          var lines = items.filter(function (item) {
            var first = !seen[item.seriesName];
            seen[item.seriesName] = true;
            return first && item.data && typeof item.data[1] === "number";
          }).map(function (item) {
            var one = figure.series.find(function (one) { return one.name === item.seriesName; });
            var at = one && one.intervals ? one.intervals[item.dataIndex] : null;
            var spread = at ? " [" + shown(at[0]) + ", " + shown(at[1]) + "]" : "";
            return item.marker + item.seriesName + ": <b>" + shown(item.data[1]) + "</b>" + spread;
          });
          return items.length ? figure.x + " " + shown(items[0].data[0]) + "<br>" + lines.join("<br>") : "";
        }
      },
      dataZoom: [
        { type: "slider", height: 18, bottom: 8, textStyle: { color: faint }, labelFormatter: shown, borderColor: line },
        { type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseMove: "shift", moveOnMouseWheel: false, preventDefaultMouseMove: false }
      ],
      xAxis: Object.assign({}, axis, { scale: true, boundaryGap: ["2%", "2%"], minInterval: whole(figure.series) ? 1 : 0, name: figure.x, nameGap: 26 }),
      yAxis: Object.assign({}, axis, { scale: far(figure.series), name: figure.y, nameGap: narrow ? 32 : 42 }),
      series: series(figure.series, narrow)
    };
  }

  function data(element) {
    return JSON.parse(element.parentElement.querySelector("script").textContent);
  }

  // All points of a figure: a row each.
  function table(figure) {
    function quoted(value) {
      var text = String(value === undefined || value === null ? "" : value);
      return /[",\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
    }
    var lines = [["series", figure.x, figure.y, "low", "high"]];
    figure.series.forEach(function (one) {
      one.points.forEach(function (point, at) {
        lines.push([one.name, point[0], point[1]].concat(one.intervals ? one.intervals[at] : ["", ""]));
      });
    });
    return lines.map(function (line) { return line.map(quoted).join(","); }).join("\n") + "\n";
  }

  function save(name, type, text) {
    var link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: type }));
    link.download = name;
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }

  document.addEventListener("click", function (event) {
    var wanted = event.target.dataset && event.target.dataset.save;
    if (!wanted) return;
    var element = event.target.closest("figure").querySelector(".chart");
    var figure = data(element);
    var name = figure.title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
    if (wanted === "csv") {
      save(name + ".csv", "text/csv", table(figure));
    } else {
      if (!charts.has(element)) draw(element);
      save(name + ".svg", "image/svg+xml", charts.get(element).renderToSVGString());
    }
  });

  function draw(element) {
    var figure = data(element);
    var chart = charts.get(element) || echarts.init(element, null, { renderer: "svg" });
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
