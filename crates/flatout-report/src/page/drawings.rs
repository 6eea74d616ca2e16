//! Boxes that the script draws: a step as a timeline, and the stacks as a flame graph. Positions are shares of the width.

use super::{Markup, Writer, markup};
use crate::digest::Digest;
use crate::digest::flame::{self, Node};
use crate::words;
use flatout_core::{Language, message, units};
use flatout_diagnose::account::Account;
use flatout_diagnose::account::frame::Frame;
use flatout_diagnose::analysis::kernels::kind_name;
use flatout_record::{GpuSlice, HostSlice, StepTimeline};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One rectangle: row, left, width, class, label, what pointing at it shows.
struct Piece {
    row: usize,
    left: f64,
    width: f64,
    class: String,
    label: String,
    detail: String,
}

impl Piece {
    fn value(&self) -> Value {
        let short = |share: f64| (share * 1e6).round() / 1e6;
        json!([
            self.row,
            short(self.left),
            short(self.width),
            self.class,
            self.label,
            self.detail
        ])
    }
}

/// What the script draws of a digest, by the id of its place in the page.
pub(crate) fn of(digest: &Digest, language: Language) -> Value {
    let mut drawings = serde_json::Map::new();
    if let Some(timeline) = &digest.timeline {
        drawings.insert("timeline".into(), json!({ "lanes": lanes(timeline, language) }));
    }
    if let Some(account) = &digest.diagnosis.account
        && let Some(root) = flame::of(account)
    {
        let boxes = flame_boxes(&root, account);
        let lane = json!({ "name": "", "boxes": boxes });
        drawings.insert("flame".into(), json!({ "lanes": [lane] }));
    }
    Value::Object(drawings)
}

impl Writer {
    /// The place of the timeline.
    pub(crate) fn timeline(&self, timeline: Option<&StepTimeline>) -> Markup {
        let Some(timeline) = timeline else {
            return Markup::default();
        };
        let (length, steps) = (units::duration(timeline.us / 1e6), timeline.steps);
        let title = match steps {
            0 => message!(en: "Part of a step, {length}", zh: "一步的一部分，{length}"),
            1 => message!(en: "One step, {length}", zh: "一步，{length}"),
            _ => message!(en: "{steps} steps, {length}", zh: "{steps} 步，{length}"),
        };
        let hint = if timeline.gpu.is_empty() {
            message!(
                en: "Hover over a box for details, click to zoom in, double-click to zoom out. Each box is \
                one sample or several consecutive ones.",
                zh: "悬停可查看方块详情，单击放大，双击还原。每个方块是一次或连续几次采样。"
            )
        } else {
            message!(
                en: "Hover over a box for details, click to zoom in, double-click to zoom out. CPU boxes are \
                samples; GPU boxes are exact.",
                zh: "指向方块可查看，单击放大，双击还原。主机的方块来自采样，GPU 的方块是精确值。"
            )
        };
        let mut text = markup!("");
        if !self.pdf_ready {
            text += self.note(&hint);
        }
        text += self.kind_legend(timeline);
        text += markup!("<div class=\"boxes\" id=\"draw-timeline\"></div>\n");
        if timeline.cut {
            text += self.note(&message!(
                en: "The step has more GPU events than a record keeps; this is its beginning.",
                zh: "这一步的 GPU 事件多于记录所能保留的数量；此处是它的开头。"
            ));
        }
        self.section(&title, text)
    }

    /// The colors of the kernels that occur.
    fn kind_legend(&self, timeline: &StepTimeline) -> Markup {
        let kinds: BTreeSet<_> = timeline.gpu.iter().filter_map(|slice| slice.kind).collect();
        let copies = timeline.gpu.iter().any(|slice| slice.kind.is_none());
        let copy = ("copy", message!(en: "copies and memsets", zh: "拷贝与 memset"));
        let all = kinds
            .into_iter()
            .map(|kind| (words::kernel_class(kind), kind_name(kind)));
        let entries: Markup = all
            .chain(copies.then_some(copy))
            .map(|(class, name)| {
                markup!(
                    "<span class=\"entry\"><i class=\"swatch g-{}\"></i>{}</span>",
                    class,
                    self.say(&name)
                )
            })
            .collect();
        if entries.is_empty() {
            return entries;
        }
        markup!("<p class=\"legend\">{}</p>\n", entries)
    }

    /// The place of the flame graph.
    pub(crate) fn flame(&self, account: Option<&Account>) -> Markup {
        let Some(account) = account.filter(|account| flame::of(account).is_some()) else {
            return Markup::default();
        };
        let samples = account.samples;
        let hint = message!(
            en: "The training thread, {samples} samples: a function is as wide as its share of the time, what it calls is below it. Point at a box to read it, click to zoom in, double-click to zoom out.",
            zh: "训练线程，{samples} 个采样：函数的宽度是它占用时间的比例，被它调用的在下方。指向方块可查看，单击放大，双击还原。"
        );
        let yours = message!(en: "your code", zh: "你的代码");
        let libraries = message!(en: "libraries", zh: "库");
        let text = self.note(&hint)
            + markup!(
                "<p class=\"legend\"><span class=\"entry\"><i class=\"swatch b-own\"></i>{}</span><span class=\"entry\"><i class=\"swatch b-library\"></i>{}</span></p>\n<div class=\"boxes\" id=\"draw-flame\"></div>\n",
                self.say(&yours),
                self.say(&libraries)
            );
        self.section(&message!(en: "Flame graph", zh: "火焰图"), text)
    }
}

fn flame_boxes(root: &Node, account: &Account) -> Vec<Value> {
    let mut sources: HashMap<String, &str> = HashMap::new();
    for row in &account.rows {
        if let (Some(place), Some(text)) = (&row.place, &row.text) {
            sources.insert(place.to_string(), text);
        }
    }
    let mut boxes = Vec::new();
    add_flames(&root.inside, 0, 0.0, &sources, &mut boxes);
    boxes
}

fn add_flames(
    nodes: &[Node],
    row: usize,
    mut left: f64,
    sources: &HashMap<String, &str>,
    boxes: &mut Vec<Value>,
) {
    for node in nodes {
        let text = sources.get(&node.place).copied();
        let source = text.map_or_else(String::new, |text| format!(" · {text}"));
        let label = match text {
            Some(text) => format!("{} {text}", file_name(&node.place)),
            None if node.users => format!("{} {}", file_name(&node.place), node.function),
            None => node.function.clone(),
        };
        let piece = Piece {
            row,
            left,
            width: node.share,
            class: if node.users { "b-own" } else { "b-library" }.into(),
            label,
            detail: format!(
                "{} · {} · {}{source}",
                units::percent(node.share),
                node.function,
                node.place
            ),
        };
        boxes.push(piece.value());
        add_flames(&node.inside, row + 1, left, sources, boxes);
        left += node.share;
    }
}

fn file_name(place: &str) -> &str {
    place.rsplit('/').next().unwrap_or(place)
}

fn lanes(timeline: &StepTimeline, language: Language) -> Vec<Value> {
    let lane = |name: String, boxes: Vec<Piece>| {
        let boxes: Vec<Value> = boxes.iter().map(Piece::value).collect();
        json!({ "name": name, "boxes": boxes })
    };
    let host = message!(en: "training thread", zh: "训练线程");
    let mut lanes = vec![lane(host.get(language).into(), host_boxes(timeline, language))];
    let mut streams: BTreeMap<u32, Vec<Piece>> = BTreeMap::new();
    for slice in &timeline.gpu {
        streams
            .entry(slice.stream)
            .or_default()
            .push(gpu_box(timeline, slice, language));
    }
    for (stream, boxes) in streams {
        let name = message!(en: "GPU, stream {stream}", zh: "GPU 的 stream {stream}");
        lanes.push(lane(name.get(language).into(), boxes));
    }
    if !timeline.workers.is_empty() {
        let name = message!(en: "a DataLoader worker", zh: "一个 DataLoader worker");
        let boxes = lines(timeline, &timeline.workers, 0, language);
        lanes.push(lane(name.get(language).into(), boxes));
    }
    lanes
}

/// Phases in the first row, the user's lines in the second.
fn host_boxes(timeline: &StepTimeline, language: Language) -> Vec<Piece> {
    let mut boxes: Vec<Piece> = Vec::new();
    for slice in &timeline.host {
        let Some(phase) = slice.phase else { continue };
        let name = words::phase(phase);
        let piece = placed(
            timeline,
            slice,
            0,
            format!("p-{}", phase.name()),
            name.get(language).into(),
        );
        join(&mut boxes, piece);
    }
    let mut lines = lines(timeline, &timeline.host, 1, language);
    boxes.append(&mut lines);
    for piece in &mut boxes {
        let length = units::duration(piece.width * timeline.us / 1e6);
        piece.detail = format!("{length} · {}", piece.detail);
    }
    boxes
}

/// The user's innermost line of each slice, and what it called.
fn lines(timeline: &StepTimeline, slices: &[HostSlice], row: usize, language: Language) -> Vec<Piece> {
    let mut boxes = Vec::new();
    for slice in slices {
        let frames: Vec<Frame> = timeline
            .stacks
            .get(slice.stack)
            .map(|stack| stack.iter().filter_map(|text| Frame::parse(text)).collect())
            .unwrap_or_default();
        let own = frames.iter().rposition(Frame::is_users);
        let polls = frames.last().is_some_and(|frame| frame.in_file("selectors.py"));
        let waits = slice.blocked.is_some() || polls;
        let label = match own {
            Some(at) => {
                let file = file_name(&frames[at].file);
                format!("{file}:{} {}", frames[at].line, frames[at].function)
            }
            None if waits => message!(en: "waits", zh: "等待").get(language).into(),
            None => frames.last().map(Frame::qualified).unwrap_or_default(),
        };
        let via = own.and_then(|at| frames.get(at + 1)).map(Frame::qualified);
        let class = match own {
            _ if waits => "b-waits",
            Some(_) => "b-own",
            None => "b-library",
        };
        let mut piece = placed(timeline, slice, row, class.into(), label);
        if let Some(via) = via {
            piece.detail = format!("{} · {via}", piece.detail);
        }
        join(&mut boxes, piece);
    }
    boxes
}

fn placed(timeline: &StepTimeline, slice: &HostSlice, row: usize, class: String, label: String) -> Piece {
    Piece {
        row,
        left: slice.at / timeline.us,
        width: slice.us / timeline.us,
        class,
        detail: label.clone(),
        label,
    }
}

/// Neighbors that show the same are one box.
fn join(boxes: &mut Vec<Piece>, piece: Piece) {
    match boxes.last_mut() {
        Some(last)
            if last.detail == piece.detail
                && last.class == piece.class
                && (last.left + last.width - piece.left).abs() < 1e-4 =>
        {
            last.width = piece.left + piece.width - last.left;
        }
        _ => boxes.push(piece),
    }
}

fn gpu_box(timeline: &StepTimeline, slice: &GpuSlice, language: Language) -> Piece {
    let name = timeline.names.get(slice.name).cloned().unwrap_or_default();
    let length = units::duration(slice.us / 1e6);
    let (class, what) = match slice.kind {
        Some(kind) => {
            let (class, name) = (words::kernel_class(kind), kind_name(kind));
            (format!("g-{class}"), name.get(language).to_owned())
        }
        None => {
            let bytes = slice.bytes.map(|bytes| units::bytes(bytes as f64));
            ("g-copy".to_owned(), bytes.unwrap_or_default())
        }
    };
    Piece {
        row: 0,
        left: slice.at / timeline.us,
        width: slice.us / timeline.us,
        class,
        detail: format!("{length} · {what} · {name}"),
        label: name,
    }
}
