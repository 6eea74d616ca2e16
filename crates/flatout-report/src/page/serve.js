// The pages of `flatout serve`: search, ticks, and what is new while runs go on. They ask their own server only.
(() => {
  const root = document.documentElement;
  document.addEventListener("flatout:theme", () => {
    document.cookie = `flatout-theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
  });

  const offline = document.getElementById("offline");
  // Asks again and again while the page is seen; more slowly when nobody answers.
  const repeat = (seconds, ask) => {
    let failures = 0;
    let going = true;
    const turn = async () => {
      if (document.hidden) {
        document.addEventListener("visibilitychange", turn, { once: true });
        return;
      }
      try {
        going = await ask();
        failures = 0;
      } catch (error) {
        failures += 1;
      }
      if (offline) offline.hidden = failures < 2;
      if (going) setTimeout(turn, seconds * 1000 * Math.min(10, 1 + failures));
    };
    setTimeout(turn, 500);
  };
  const get = async (address) => {
    const answer = await fetch(address, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(answer.status);
    return answer.json();
  };

  const localTimes = (within) => {
    for (const time of within.querySelectorAll("time")) {
      const when = new Date(time.dateTime);
      if (isNaN(when)) continue;
      time.title = time.textContent;
      time.textContent = when.toLocaleString(root.lang, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", year: when.getFullYear() === new Date().getFullYear() ? undefined : "numeric" });
    }
  };

  const list = document.getElementById("list");
  if (list) {
    const rows = document.getElementById("rows");
    const search = document.getElementById("q");
    const count = document.getElementById("count");
    const compare = document.getElementById("compare");
    const MOST = 6;
    let state = "";
    let version = list.dataset.version;
    localTimes(rows);

    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows.rows) {
        const text = words.length ? (row.textContent + " " + row.querySelector("small").title).toLowerCase() : "";
        const failed = ["failed", "stopped", "unreadable"].includes(row.dataset.state);
        const fits = !state || row.dataset.state === state || (state === "failed" && failed);
        row.hidden = !(fits && words.every((word) => text.includes(word)));
        if (!row.hidden) shown += 1;
      }
      count.textContent = shown === rows.rows.length ? String(shown) : `${shown} / ${rows.rows.length}`;
    };
    search.addEventListener("input", filter);
    for (const chip of document.querySelectorAll(".chip")) {
      chip.addEventListener("click", () => {
        state = chip.dataset.filter;
        for (const other of document.querySelectorAll(".chip")) other.setAttribute("aria-pressed", other === chip);
        filter();
      });
    }

    const label = compare.textContent;
    const ticks = () => {
      const chosen = rows.querySelectorAll("input:checked").length;
      compare.disabled = chosen < 2 || chosen > MOST;
      compare.textContent = chosen ? `${label} (${chosen})` : label;
      for (const box of rows.querySelectorAll("input[name]:not(:checked)")) box.disabled = chosen >= MOST;
    };
    rows.addEventListener("change", ticks);

    // The server works out the findings of the rows that are seen.
    const seen = new Set();
    const sight = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) seen.add(entry.target);
        else seen.delete(entry.target);
      }
    });
    const place = (change) => {
      const holder = document.createElement("tbody");
      holder.innerHTML = change.html;
      const row = holder.firstElementChild;
      if (!row) return;
      localTimes(row);
      const old = document.getElementById("r-" + change.key);
      if (old) {
        row.querySelector("input").checked = old.querySelector("input").checked;
        sight.unobserve(old);
        seen.delete(old);
        old.replaceWith(row);
      } else {
        const before = change.after && document.getElementById("r-" + change.after);
        if (before) before.after(row);
        else rows.prepend(row);
        for (const note of document.querySelectorAll(".empty")) note.remove();
      }
      sight.observe(row);
    };
    for (const row of rows.rows) sight.observe(row);
    filter();
    ticks();
    addEventListener("pageshow", () => { filter(); ticks(); });
    repeat(2, async () => {
      const keys = [...seen].filter((row) => !row.hidden && (row.classList.contains("pending") || row.dataset.state === "running"));
      const see = keys.slice(0, 60).map((row) => row.id.slice(2)).join(",");
      const news = await get(`/rows?since=${version}&see=${see}&q=${encodeURIComponent(list.dataset.query)}`);
      version = news.version;
      news.rows.forEach(place);
      for (const key of news.gone) document.getElementById("r-" + key)?.remove();
      if (news.rows.length || news.gone.length) { filter(); ticks(); }
      return true;
    });
  }

  const run = document.getElementById("run");
  if (run && run.dataset.live === "true") {
    const now = document.getElementById("now");
    const report = document.getElementById("report");
    let version = run.dataset.version;
    // Whatever the reader unfolded stays unfolded.
    const show = (news) => {
      const open = [...report.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent);
      report.innerHTML = news.body;
      for (const summary of report.querySelectorAll("details > summary")) {
        if (open.includes(summary.textContent)) summary.parentElement.open = true;
      }
      document.getElementById("data").textContent = news.data;
      document.dispatchEvent(new Event("flatout:data"));
      version = news.version;
      run.dataset.version = version;
    };
    // New contents would take away what is being selected or dragged.
    let held = false;
    addEventListener("pointerdown", () => { held = true; });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { held = false; });
    repeat(2, async () => {
      const news = await get(`/run/${run.dataset.key}/live?version=${version}`);
      now.innerHTML = news.now;
      const selection = getSelection();
      const busy = held || (selection && !selection.isCollapsed && report.contains(selection.anchorNode));
      if (news.body && !(busy && news.running)) show(news);
      run.dataset.live = news.running;
      return news.running || Boolean(news.body && busy);
    });
  }
})();
