// Boxes in rows: the timeline of a step and the flame graph. A click zooms into a box, a double click out.
(() => {
  let listeners = null;
  const views = {};
  const start = () => {
    if (listeners) listeners.abort();
    listeners = new AbortController();
    const drawings = JSON.parse(document.getElementById("data").textContent).drawings || {};
    const NS = "http://www.w3.org/2000/svg";
    const ROW = 20;
    const make = (name, attributes, parent) => {
      const element = document.createElementNS(NS, name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      parent.appendChild(element);
      return element;
    };
    const shown = [];
    for (const [key, drawing] of Object.entries(drawings)) {
      const holder = document.getElementById("draw-" + key);
      if (!holder) continue;
      const svg = make("svg", { class: "rows", role: "img" }, holder);
      const detail = document.createElement("p");
      detail.className = "detail";
      holder.appendChild(detail);
      shown.push({ key, drawing, holder, svg, detail, view: views[key] || [0, 1] });
    }
    const draw = (one) => {
      const width = Math.max(280, one.holder.clientWidth || 640);
      const [from, to] = one.view;
      const x = (share) => ((share - from) / (to - from)) * width;
      one.svg.replaceChildren();
      let top = 0;
      for (const lane of one.drawing.lanes) {
        if (lane.name) {
          const name = make("text", { class: "lane", x: 0, y: top + 14 }, one.svg);
          name.textContent = lane.name;
          top += ROW;
        }
        let rows = 1;
        for (const box of lane.boxes) {
          const [row, left, wide, kind, label] = box;
          rows = Math.max(rows, row + 1);
          const [start, end] = [Math.max(0, x(left)), Math.min(width, x(left + wide))];
          if (end < 0 || start > width || end - start < 0.05) continue;
          const y = top + row * ROW;
          const gap = end - start > 3 ? 1 : 0;
          const rect = make("rect", { class: kind, x: start, y, width: Math.max(0.6, end - start - gap), height: ROW - 2, rx: gap }, one.svg);
          rect.box = box;
          const letters = Math.floor((end - start - 6) / 6.4);
          if (letters >= 4) {
            const text = make("text", { class: "name", x: start + 4, y: y + 13 }, one.svg);
            text.textContent = label.length > letters ? label.slice(0, letters - 1) + "…" : label;
          }
        }
        top += rows * ROW + 6;
      }
      one.svg.setAttribute("viewBox", `0 0 ${width} ${top}`);
      one.svg.setAttribute("height", top);
    };
    for (const one of shown) {
      const over = (event) => {
        if (event.target.box) one.detail.textContent = event.target.box[5];
      };
      one.svg.addEventListener("pointerover", over);
      one.svg.addEventListener("pointerdown", over);
      one.svg.addEventListener("click", (event) => {
        const box = event.target.box;
        if (!box) return;
        one.view = views[one.key] = [box[1], box[1] + box[2]];
        draw(one);
      });
      one.svg.addEventListener("dblclick", () => {
        one.view = views[one.key] = [0, 1];
        draw(one);
      });
      draw(one);
    }
    addEventListener("resize", () => shown.forEach(draw), { signal: listeners.signal });
  };
  start();
  document.addEventListener("flatout:data", start);
})();
