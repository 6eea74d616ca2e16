"use strict";
// Draws the time charts from the data block: one zoom for all of them, values under the pointer. No libraries, no network.
(() => {
  // The theme button may be drawn again with new data: the document listens for it.
  document.addEventListener("click", (event) => {
    if (event.target.id !== "theme") return;
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    document.dispatchEvent(new Event("flatout:theme"));
  });

  // A page that is served gets new data while a run goes on: everything is drawn again, at the same zoom.
  let listeners = null;
  let zoomed = null;
  const start = () => {
    if (listeners) listeners.abort();
    listeners = new AbortController();
    const data = JSON.parse(document.getElementById("data").textContent);
    const words = data.words;

    const make = (name, attributes, parent) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      if (parent) parent.appendChild(element);
      return element;
    };
    const element = (name, className, text, parent) => {
      const made = document.createElement(name);
      made.className = className;
      made.textContent = text;
      parent.appendChild(made);
      return made;
    };

    const digits = (value) => {
      const size = Math.abs(value);
      if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
      return String(Number(value.toPrecision(size >= 1000 ? 4 : 3)));
    };
    const scaled = (value, base, names) => {
      let index = 0;
      while (Math.abs(value) >= base && index + 1 < names.length) { value /= base; index += 1; }
      return digits(value) + names[index];
    };
    const show = (value, scale) => {
      switch (scale) {
        case "%": return digits(Math.round(value * 10) / 10) + "%";
        case "B": return scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
        case "ms": return value >= 1000 ? digits(value / 1000) + " s" : value >= 1 || value === 0 ? digits(value) + " ms" : digits(value * 1000) + " µs";
        case "": return scaled(value, 1000, ["", "k", "M", "G"]);
        case "~": return digits(value);
        default: return digits(value) + " " + scale;
      }
    };
    const two = (value) => String(Math.floor(value)).padStart(2, "0");
    const time = (seconds, step) => {
      if (data.end < 180) return digits(Math.round(seconds * 10) / 10) + " s";
      const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
      const rest = step < 60 ? ":" + two(seconds % 60) : "";
      return data.end >= 3600 ? hours + ":" + two(minutes) + (rest || " h") : minutes + (rest || " min");
    };
    const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
    const timeStep = (span, count) => STEPS.find((step) => span / step <= count) || span;
    const niceStep = (span, count, base) => {
      const raw = span / count;
      const power = Math.pow(base, Math.floor(Math.log(raw) / Math.log(base)));
      const choices = base === 1024 ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] : [1, 2, 2.5, 5, 10];
      return power * (choices.find((choice) => choice * power >= raw * 0.999) || base);
    };

    const whole = [0, data.end];
    let view = zoomed || whole;
    const charts = [];
    const resets = [];

    // The lowest and highest value to be seen, and the mean of what is seen.
    const seen = (series) => {
      let [sum, count, low, high] = [0, 0, Infinity, -Infinity];
      series.mean.forEach((value, index) => {
        const t = (index + 0.5) * series.width;
        if (value === null || t < view[0] || t > view[1]) return;
        sum += value;
        count += 1;
        low = Math.min(low, series.min ? series.min[index] : value);
        high = Math.max(high, series.max ? series.max[index] : value);
      });
      return { mean: count ? sum / count : null, low, high };
    };

    const domain = (chart) => {
      if (chart.scale === "%") return [0, 100];
      let [low, high] = [Infinity, -Infinity];
      for (const series of chart.series) {
        const range = seen(series);
        low = Math.min(low, range.low);
        high = Math.max(high, range.high);
      }
      if (!(high > -Infinity)) return [0, 1];
      if (chart.scale !== "~") return [0, high > 0 ? high * 1.06 : 1];
      const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
      return [low - room, high + room];
    };

    const draw = (one) => {
      const { chart, svg } = one;
      const width = Math.max(280, one.holder.clientWidth || 640);
      const height = width < 480 ? 150 : 180;
      const box = { left: 66, right: width - 10, top: 8, bottom: height - 22 };
      Object.assign(one, { box, width });
      svg.replaceChildren();
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const [low, high] = domain(chart);
      const x = (t) => box.left + ((t - view[0]) / (view[1] - view[0])) * (box.right - box.left);
      const y = (value) => box.bottom - ((value - low) / (high - low)) * (box.bottom - box.top);
      one.x = x;
      const inside = (t) => Math.min(box.right, Math.max(box.left, x(t)));

      for (const [kind, spans] of [["eval", data.marks.evals], ["checkpoint", data.marks.checkpoints]]) {
        for (const [start, end] of spans) {
          if (end < view[0] || start > view[1]) continue;
          const left = inside(start);
          make("rect", { class: "mark " + kind, x: left, y: box.top, width: Math.max(1, inside(end) - left), height: box.bottom - box.top }, svg);
        }
      }
      const step = niceStep(high - low, 4, chart.scale === "B" ? 1024 : 10);
      for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) {
        make("line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }, svg);
        make("text", { class: "tick", x: box.left - 6, y: y(value) + 4, "text-anchor": "end" }, svg).textContent = show(Math.abs(value) < step * 1e-6 ? 0 : value, chart.scale);
      }
      const every = timeStep(view[1] - view[0], width < 480 ? 4 : 8);
      for (let t = Math.ceil(view[0] / every) * every; t <= view[1] + 1e-9; t += every) {
        const anchor = x(t) > box.right - 20 ? "end" : "middle";
        make("text", { class: "tick", x: x(t), y: height - 6, "text-anchor": anchor }, svg).textContent = time(t, every);
      }
      for (const [t] of data.marks.epochs) {
        if (t < view[0] || t > view[1]) continue;
        make("line", { class: "mark epoch", x1: x(t), x2: x(t), y1: box.top, y2: box.bottom }, svg);
      }
      chart.series.forEach((series, number) => curve(one, series, number, y));
      one.cross = make("line", { class: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" }, svg);
      one.chosen = make("rect", { class: "chosen", y: box.top, height: box.bottom - box.top, width: 0, x: 0, visibility: "hidden" }, svg);
      rest(one);
    };

    // There are six colors.
    const color = (series, number) => (series.color ?? number) % 6;

    // A line through the means and, where a bucket holds several values, the band from least to greatest.
    const curve = (one, series, number, y) => {
      const { chart, svg, x } = one;
      let [line, upper, lower, last] = ["", [], [], -9];
      // A loss is read now and then: between two readings it is as good as known.
      const patience = chart.scale === "~" ? Infinity : 3;
      const alone = [];
      const band = () => {
        if (series.min && upper.length > 1) {
          make("path", { class: "band c" + color(series, number), d: "M" + upper.join("L") + "L" + lower.reverse().join("L") + "Z" }, svg);
        }
        [upper, lower] = [[], []];
      };
      const first = Math.max(0, Math.floor(view[0] / series.width) - 1);
      const end = Math.min(series.mean.length, Math.ceil(view[1] / series.width) + 2);
      for (let index = first; index < end; index += 1) {
        const value = series.mean[index];
        if (value === null) continue;
        const t = Math.min(view[1], Math.max(view[0], (index + 0.5) * series.width));
        const at = x(t).toFixed(1);
        // More than two buckets without a value: nothing was measured there, so nothing is drawn.
        const gap = last < 0 || index - last > patience;
        if (gap) band();
        line += (gap ? "M" : "L") + at + " " + y(value).toFixed(1);
        if (series.min) {
          upper.push(at + " " + y(series.max[index]).toFixed(1));
          lower.push(at + " " + y(series.min[index]).toFixed(1));
        }
        const [before, after] = [index - last, series.mean.slice(index + 1, index + 1 + Math.min(patience, 9999)).some((next) => next !== null)];
        if ((last < 0 || before > patience) && !after) alone.push([at, y(value)]);
        last = index;
      }
      band();
      if (line) make("path", { class: "line c" + color(series, number) + (series.limit ? " limit" : ""), d: line }, svg);
      for (const [cx, cy] of alone) make("circle", { class: "dot c" + color(series, number), cx, cy, r: 3 }, svg);
    };

    // Without a pointer the legend tells the means over the time that is seen; a batch or a loss has no mean over time.
    const rest = (one) => {
      one.when.textContent = "";
      one.chart.series.forEach((series, number) => {
        if (["ms", "~"].includes(one.chart.scale)) { one.values[number].textContent = ""; return; }
        const { mean } = seen(series);
        one.values[number].textContent = mean === null ? "–" : (series.limit ? "" : "⌀ ") + show(mean, one.chart.scale);
      });
    };

    const point = (t) => {
      for (const one of charts) {
        one.cross.setAttribute("x1", one.x(t));
        one.cross.setAttribute("x2", one.x(t));
        one.cross.setAttribute("visibility", "visible");
        one.when.textContent = time(t, 1);
        one.chart.series.forEach((series, number) => {
          const index = Math.floor(t / series.width);
          let found = null;
          for (const near of [0, -1, 1, -2, 2]) {
            const value = series.mean[index + near];
            if (value !== null && value !== undefined) { found = index + near; break; }
          }
          let text = found === null ? "–" : show(series.mean[found], one.chart.scale);
          if (found !== null && series.min && series.min[found] !== series.max[found]) {
            text += ` (${show(series.min[found], one.chart.scale)} – ${show(series.max[found], one.chart.scale)})`;
          }
          one.values[number].textContent = text;
        });
      }
    };
    const leave = () => {
      for (const one of charts) {
        one.cross.setAttribute("visibility", "hidden");
        rest(one);
      }
    };
    const zoom = (next) => {
      view = next;
      zoomed = view === whole ? null : view;
      for (const reset of resets) reset.hidden = view === whole;
      charts.forEach(draw);
    };

    const listen = (one) => {
      let start = null;
      const at = (event) => {
        const place = one.svg.getBoundingClientRect();
        const inner = ((event.clientX - place.left) / place.width) * one.width;
        const share = (inner - one.box.left) / (one.box.right - one.box.left);
        return view[0] + Math.min(1, Math.max(0, share)) * (view[1] - view[0]);
      };
      one.svg.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        start = at(event);
        one.svg.setPointerCapture(event.pointerId);
      });
      one.svg.addEventListener("pointermove", (event) => {
        const t = at(event);
        point(t);
        if (start === null) return;
        const [left, right] = [one.x(Math.min(start, t)), one.x(Math.max(start, t))];
        one.chosen.setAttribute("x", left);
        one.chosen.setAttribute("width", right - left);
        one.chosen.setAttribute("visibility", right - left > 5 ? "visible" : "hidden");
      });
      one.svg.addEventListener("pointerup", (event) => {
        if (start === null) return;
        const [from, to] = [Math.min(start, at(event)), Math.max(start, at(event))];
        start = null;
        const wide = one.x(to) - one.x(from) > 5;
        one.chosen.setAttribute("visibility", "hidden");
        if (wide && to - from >= one.chart.series[0].width * 2) zoom([from, to]);
      });
      one.svg.addEventListener("pointercancel", () => { start = null; one.chosen.setAttribute("visibility", "hidden"); });
      one.svg.addEventListener("pointerleave", () => { if (start === null) leave(); });
      one.svg.addEventListener("dblclick", () => zoom(whole));
    };

    for (const chart of data.charts) {
      const holder = document.getElementById("chart-" + chart.key);
      if (!holder) continue;
      const legend = element("p", "legend", "", holder);
      const values = chart.series.map((series, number) => {
        const entry = element("span", "entry", "", legend);
        element("i", "swatch c" + color(series, number) + (series.limit ? " limit" : ""), "", entry);
        element("span", "", series.name + " ", entry);
        return element("b", "", "", entry);
      });
      const when = element("span", "when", "", legend);
      const svg = make("svg", { class: "plot", role: "img", "aria-label": chart.title }, holder);
      const one = { chart, holder, svg, values, when };
      charts.push(one);
      listen(one);
    }
    for (const holder of document.querySelectorAll(".reset")) {
      const button = element("button", "", words.whole, holder);
      button.hidden = view === whole;
      button.addEventListener("click", () => zoom(whole));
      resets.push(button);
    }
    const all = () => charts.forEach(draw);
    all();
    let waiting = 0;
    addEventListener("resize", () => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(all);
    }, { signal: listeners.signal });
  };
  start();
  document.addEventListener("flatout:data", start);
})();
