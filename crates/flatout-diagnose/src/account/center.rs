//! The lines that stand for a part of the account.
//!
//! The function that contains the training loop is the one in which the paths to `backward()`, to the optimizer and to the next
//! batch part. Its lines split the time of a step; from each of them the way goes on to the line that holds most of it: the call
//! of `score()` in the loop, then the comparison inside `score()`.

use super::activity::Activity;
use super::frame::Frame;
use super::{Account, Span};
use flatout_core::Place;
use flatout_record::{Phase, RunData, SourceLine, SourceLoop};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A called function that holds this much of its caller's time is where the time goes.
const DOMINANT: f64 = 0.6;
/// An object whose methods hold this much of the time is named where it is made.
const MADE: f64 = 0.3;
/// Calls named between the hot line and the loop.
const MOST_CALLS: usize = 3;
/// Without a step to go by, a line that holds this much of everything is above the loop.
const TRUNK: f64 = 0.95;

/// A loop that this much of everything is in is the program's own, without a step to go by.
const REPEATED: f64 = 0.8;
/// Fewer rounds of it in a timeline say little.
const FEWEST_ROUNDS: f64 = 8.0;
/// From this part of what chance would make on, rounds are not told apart.
const BY_CHANCE: f64 = 0.5;

/// A part of the time with the line to look at.
#[derive(Clone, Debug)]
pub struct Center {
    pub seconds: f64,
    /// The line that holds most of it.
    pub hot: Frame,
    /// The line of the training loop that leads there.
    pub site: Frame,
    /// The user's frames between the two, innermost first.
    pub path: Vec<Frame>,
    /// The function of a library that holds most of its time, if one does.
    pub via: Option<Frame>,
    /// Its time by activity, the largest first.
    pub activities: Vec<(Activity, f64)>,
    /// The part of its time between the end of a step and the next batch.
    pub between_steps_s: f64,
    /// The share of its time that its lines spend in modules they call.
    pub share_of_modules: f64,
    /// Most of it is inside a module's forward or in a loss: backward repeats it.
    pub in_forward: bool,
    /// Packages of libraries in its stacks with their time, the largest first.
    pub packages: Vec<(String, f64)>,
    /// The source of the hot line.
    pub source: Option<SourceLine>,
    /// The loop of the source that all of it is in, below the loop over batches.
    pub inner_loop: Option<SourceLoop>,
    /// Where the library objects are made whose methods take most of its time: transforms, collators.
    pub made_at: Vec<Place>,
}

impl Center {
    /// What it mostly does.
    pub fn activity(&self) -> Activity {
        self.activities
            .first()
            .map_or(Activity::Unexplained, |(activity, _)| *activity)
    }

    /// The share of its time with this package in the stack, below the user's line.
    pub fn share_in(&self, package: &str) -> f64 {
        let found = self.packages.iter().find(|(name, _)| name == package);
        found.map_or(0.0, |(_, seconds)| seconds / self.seconds.max(f64::MIN_POSITIVE))
    }

    /// `score() at train.py:12`.
    pub fn described(&self) -> String {
        let name = self.hot.file.rsplit('/').next().unwrap_or(&self.hot.file);
        format!("{}:{}", name, self.hot.line)
    }

    /// The hot line, then the calls that lead there, the loop's line last.
    pub fn places(&self) -> Vec<Place> {
        let mut places = vec![self.hot.place()];
        let calls = self.path.iter().take(MOST_CALLS).chain([&self.site]);
        for place in self.made_at.iter().cloned().chain(calls.map(Frame::place)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    pub fn text(&self) -> Option<&str> {
        self.source.as_ref().map(|line| line.text.as_str())
    }
}

/// The lines behind the spans that `keep` chooses, the costliest first.
pub fn centers(account: &Account, data: &RunData, keep: impl Fn(&Span) -> bool) -> Vec<Center> {
    let lines = Lines::of(data);
    let trunk = Trunk::of(&account.spans);
    let shared = shared_loops(account, &trunk, &lines);
    let mut groups: BTreeMap<Key, Vec<&Span>> = BTreeMap::new();
    for span in account.spans.iter().filter(|span| keep(span)) {
        let Some(site) = trunk.site(span) else { continue };
        let inner = lines.inner_loop(site, shared);
        let key = Key {
            file: site.file.clone(),
            function: site.function.clone(),
            line: inner.map_or(site.line, |inner| inner.line),
        };
        groups.entry(key).or_default().push(span);
    }
    let mut found: Vec<Center> = groups
        .into_values()
        .filter_map(|spans| center(&trunk, &spans, &lines, shared))
        .collect();
    found.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    found
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    file: String,
    function: String,
    /// The site's line, or the line of the loop it is in.
    line: u32,
}

fn center(trunk: &Trunk, spans: &[&Span], lines: &Lines, shared: usize) -> Option<Center> {
    let all: f64 = seconds(spans);
    let site = heaviest(
        spans
            .iter()
            .filter_map(|span| Some((trunk.site(span)?, span.seconds))),
    )?
    .clone();
    // Down into the functions that hold most of what is left.
    let mut here: Vec<(Vec<&Frame>, &Span)> = spans
        .iter()
        .map(|span| (trunk.below(span).collect(), *span))
        .collect();
    let mut depth = 0;
    loop {
        let total: f64 = here.iter().map(|(_, span)| span.seconds).sum();
        let mut functions: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for (path, span) in &here {
            if let Some(frame) = path.get(depth + 1) {
                *functions.entry((&frame.file, &frame.function)).or_default() += span.seconds;
            }
        }
        let top = functions.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let Some(((file, function), _)) = top.filter(|(_, inside)| *inside >= total * DOMINANT) else {
            break;
        };
        let (file, function) = (file.to_owned(), function.to_owned());
        here.retain(|(path, _)| {
            path.get(depth + 1)
                .is_some_and(|frame| frame.file == file && frame.function == function)
        });
        depth += 1;
    }
    let hot = heaviest(
        here.iter()
            .filter_map(|(path, span)| Some((*path.get(depth)?, span.seconds))),
    )?
    .clone();
    let calls = (1..depth).rev().filter_map(|at| {
        let frames = here
            .iter()
            .filter_map(|(path, span)| Some((*path.get(at)?, span.seconds)));
        heaviest(frames).cloned()
    });
    let calls: Vec<Frame> = calls.collect();
    let via = {
        let called = here
            .iter()
            .filter_map(|(_, span)| Some((span.via()?, span.seconds)));
        let top = heaviest_function(called);
        let total: f64 = here.iter().map(|(_, span)| span.seconds).sum();
        top.filter(|(_, inside)| *inside >= total * DOMINANT)
            .map(|(frame, _)| frame.clone())
    };
    // Below the training loop's function, any loop of the hot line's own function is an inner one.
    let same_function = hot.file == site.file && hot.function == site.function;
    let skipped = if same_function { shared } else { 0 };
    let mut activities: BTreeMap<Activity, f64> = BTreeMap::new();
    for span in spans {
        *activities.entry(span.activity).or_default() += span.seconds;
    }
    let mut activities: Vec<(Activity, f64)> = activities.into_iter().collect();
    activities.sort_by(|a, b| b.1.total_cmp(&a.1));
    let between = spans.iter().filter(|span| span.phase == Some(Phase::Other));
    let mut packages: BTreeMap<&str, f64> = BTreeMap::new();
    for span in spans {
        let found: BTreeSet<&str> = span.called().filter_map(Frame::package).collect();
        for package in found {
            *packages.entry(package).or_default() += span.seconds;
        }
    }
    let mut packages: Vec<(String, f64)> = packages
        .into_iter()
        .map(|(package, seconds)| (package.to_owned(), seconds))
        .collect();
    packages.sort_by(|a, b| b.1.total_cmp(&a.1));
    let in_modules = spans
        .iter()
        .filter(|span| span.called().any(Frame::is_module_call));
    let in_modules: f64 = in_modules.map(|span| span.seconds).sum();
    let inside = spans
        .iter()
        .filter(|span| span.frames.iter().any(Frame::is_module_call));
    let inside: f64 = inside.map(|span| span.seconds).sum();
    Some(Center {
        seconds: all,
        share_of_modules: in_modules / all.max(f64::MIN_POSITIVE),
        in_forward: inside * 2.0 >= all,
        activities,
        between_steps_s: between.map(|span| span.seconds).sum(),
        packages,
        source: lines.get(&hot).cloned(),
        inner_loop: lines.inner_loop(&hot, skipped).cloned(),
        made_at: made_at(spans, lines),
        hot,
        site,
        path: calls,
        via,
    })
}

/// Where the objects are made whose methods hold most of the time of preparing batches, the narrowest first.
fn made_at(spans: &[&Span], lines: &Lines) -> Vec<Place> {
    let mut classes: BTreeMap<&str, f64> = BTreeMap::new();
    let preparing = spans
        .iter()
        .filter(|span| span.activity == Activity::PreparingBatch);
    for span in preparing {
        let found: BTreeSet<&str> = span.frames.iter().filter_map(Frame::library_class).collect();
        for class in found {
            *classes.entry(class).or_default() += span.seconds;
        }
    }
    let enough = seconds(spans) * MADE;
    let mut classes: Vec<(&str, f64)> = classes.into_iter().filter(|(_, held)| *held >= enough).collect();
    classes.sort_by(|a, b| a.1.total_cmp(&b.1));
    classes
        .iter()
        .flat_map(|(class, _)| lines.making(class))
        .take(MOST_CALLS)
        .collect()
}

/// Functions of the user's that the training loop calls beside the model, with all the time inside of them.
pub fn helpers(account: &Account, data: &RunData, keep: impl Fn(&Span) -> bool) -> Vec<Center> {
    let trunk = Trunk::of(&account.spans);
    centers(account, data, |span| {
        keep(span) && trunk.below(span).nth(1).is_some()
    })
}

/// Each of the user's lines with the time at it and below it in libraries, the costliest first.
pub fn single_lines(account: &Account, data: &RunData, keep: impl Fn(&Span) -> bool) -> Vec<Center> {
    let lines = Lines::of(data);
    let trunk = Trunk::of(&account.spans);
    // The lines of a function beside forward belong together: a check, a mask, a statistic.
    let mut groups: BTreeMap<(&str, &str, u32), Vec<&Span>> = BTreeMap::new();
    for span in account.spans.iter().filter(|span| keep(span)) {
        if let Some(frame) = span.line() {
            let whole = !frame.function.ends_with("forward") && trunk.site(span) != Some(frame);
            let line = if whole { 0 } else { frame.line };
            groups
                .entry((&frame.file, &frame.function, line))
                .or_default()
                .push(span);
        }
    }
    let mut found: Vec<Center> = groups
        .into_values()
        .filter_map(|spans| {
            let mut found = center(&trunk, &spans, &lines, 0)?;
            let hot = heaviest(spans.iter().filter_map(|span| Some((span.line()?, span.seconds))))?;
            found.hot = hot.clone();
            found.source = lines.get(hot).cloned();
            Some(found)
        })
        .collect();
    found.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    found
}

/// Loops of the source inside the step with all the time inside of them, the costliest first.
pub fn loops(account: &Account, data: &RunData, keep: impl Fn(&Span) -> bool) -> Vec<Center> {
    let lines = Lines::of(data);
    let trunk = Trunk::of(&account.spans);
    let shared = shared_loops(account, &trunk, &lines);
    let mut groups: BTreeMap<(&str, &str, u32), Vec<&Span>> = BTreeMap::new();
    for span in account.spans.iter().filter(|span| keep(span)) {
        let site = trunk.site(span);
        // The outermost loop below the one over batches: a loop inside of it belongs to it. A loop over the model's layers is
        // the model; one inside a layer is not.
        let mut looped = trunk.below(span).filter_map(|frame| {
            let skipped = if Some(frame) == site { shared } else { 0 };
            Some((frame, lines.inner_loop(frame, skipped)?))
        });
        let first = looped.next();
        let over_data = first
            .into_iter()
            .chain(looped)
            .find(|(_, inner)| !is_over_modules(&inner.text));
        if let Some((frame, inner)) = over_data.or(first) {
            let key = (frame.file.as_str(), frame.function.as_str(), inner.line);
            groups.entry(key).or_default().push(span);
        }
    }
    let mut found: Vec<Center> = groups
        .into_iter()
        .filter_map(|((file, function, line), spans)| {
            let mut found = center(&trunk, &spans, &lines, shared)?;
            // The loop is named by the frame that contains it, however deep its hottest line is.
            let inside = heaviest(spans.iter().flat_map(|span| {
                let frames = trunk.below(span);
                frames
                    .filter(|frame| frame.file == file && frame.function == function)
                    .map(|frame| (frame, span.seconds))
            }))?;
            let source = lines.get(inside)?;
            found.inner_loop = source.loops.iter().find(|inner| inner.line == line).cloned();
            found.path.insert(0, inside.clone());
            Some(found)
        })
        .collect();
    found.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    found
}

/// The lines of a loader's worker that are not waiting for work; seconds are those of the samples.
pub fn worker_centers(data: &RunData, (start_s, end_s): (f64, f64)) -> Vec<Center> {
    let ticks = data
        .stacks
        .iter()
        .filter(|tick| tick.t > start_s && tick.t <= end_s + 60.0);
    let stacks = ticks.flat_map(|tick| &tick.stacks).filter(|stack| stack.worker);
    let spans: Vec<Span> = stacks
        .map(|stack| Span {
            activity: Activity::PreparingBatch,
            phase: None,
            gpu: None,
            gil: stack.gil,
            seconds: stack.time_ms() / 1e3,
            frames: stack
                .frames
                .iter()
                .filter_map(|text| Frame::parse(text))
                .collect(),
        })
        .collect();
    let lines = Lines::of(data);
    // A worker has no loop of the user's above it: all its own frames are work on the batch.
    let trunk = Trunk { frames: Vec::new() };
    let mut groups: BTreeMap<(&str, &str), Vec<&Span>> = BTreeMap::new();
    for span in &spans {
        if let Some(site) = trunk.site(span) {
            groups.entry((&site.file, &site.function)).or_default().push(span);
        }
    }
    let found = groups.into_values();
    let mut found: Vec<Center> = found
        .filter_map(|spans| center(&trunk, &spans, &lines, 0))
        .collect();
    found.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    found
}

fn seconds(spans: &[&Span]) -> f64 {
    spans.iter().map(|span| span.seconds).sum()
}

fn heaviest<'a>(frames: impl Iterator<Item = (&'a Frame, f64)>) -> Option<&'a Frame> {
    let mut sums: BTreeMap<&Frame, f64> = BTreeMap::new();
    for (frame, seconds) in frames {
        *sums.entry(frame).or_default() += seconds;
    }
    sums.into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(frame, _)| frame)
}

/// The function with most of the time, as one of its frames.
fn heaviest_function<'a>(frames: impl Iterator<Item = (&'a Frame, f64)>) -> Option<(&'a Frame, f64)> {
    let mut sums: BTreeMap<(&str, &str), (&Frame, f64)> = BTreeMap::new();
    for (frame, seconds) in frames {
        let sum = sums.entry((&frame.file, &frame.function)).or_insert((frame, 0.0));
        sum.1 += seconds;
    }
    sums.into_values().max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The user's frames above the lines of the training loop.
pub struct Trunk {
    frames: Vec<Frame>,
}

impl Trunk {
    pub fn of(spans: &[Span]) -> Self {
        let parts: [&dyn Fn(&Span) -> bool; 3] =
            [&|span| in_backward(span), &|span| in_optimizer(span), &|span| {
                span.phase == Some(Phase::Data)
            }];
        let paths: Vec<Vec<&Frame>> = parts
            .iter()
            .filter_map(|part| usual_path(spans.iter().filter(|span| part(span))))
            .collect();
        let Some((first, others)) = paths.split_first().filter(|(_, others)| !others.is_empty()) else {
            return Self::by_weight(spans);
        };
        let common = (0..first.len())
            .take_while(|at| others.iter().all(|path| path.get(*at) == first.get(*at)))
            .count();
        // Where a path ends in the common part, its last frame is the loop's own.
        let shortest = paths.iter().map(Vec::len).min().unwrap_or(0);
        let frames = first[..common.min(shortest.saturating_sub(1))].iter();
        Self {
            frames: frames.map(|frame| (*frame).clone()).collect(),
        }
    }

    /// Lines that hold nearly everything.
    fn by_weight(spans: &[Span]) -> Self {
        let mut frames: Vec<Frame> = Vec::new();
        loop {
            let depth = frames.len();
            let below = || {
                spans
                    .iter()
                    .filter(|span| span.own().take(depth).eq(frames.iter()))
            };
            let all: f64 = spans.iter().map(|span| span.seconds).sum();
            let next = heaviest(below().filter_map(|span| Some((span.own().nth(depth)?, span.seconds))));
            let Some(next) = next.cloned() else { break };
            let inside: f64 = below()
                .filter(|span| span.own().nth(depth) == Some(&next) && span.own().nth(depth + 1).is_some())
                .map(|span| span.seconds)
                .sum();
            if inside < all * TRUNK {
                break;
            }
            frames.push(next);
        }
        Self { frames }
    }

    /// The frame below the trunk: a line of the training loop, or where the way leaves the trunk.
    pub fn site<'a>(&self, span: &'a Span) -> Option<&'a Frame> {
        self.below(span).next()
    }

    /// The user's frames from the site on.
    fn below<'a>(&self, span: &'a Span) -> impl Iterator<Item = &'a Frame> + use<'a> {
        let own: Vec<&Frame> = span.own().collect();
        let along = own
            .iter()
            .zip(&self.frames)
            .take_while(|(a, b)| **a == *b)
            .count()
            .min(own.len().saturating_sub(1));
        own.into_iter().skip(along)
    }
}

/// The path of the user's frames that most of these spans take.
fn usual_path<'a>(spans: impl Iterator<Item = &'a Span>) -> Option<Vec<&'a Frame>> {
    let mut sums: BTreeMap<Vec<&Frame>, f64> = BTreeMap::new();
    for span in spans {
        let path: Vec<&Frame> = span.own().collect();
        if !path.is_empty() {
            *sums.entry(path).or_default() += span.seconds;
        }
    }
    sums.into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(path, _)| path)
}

/// Inside `Tensor.backward()` or `torch.autograd.grad()`.
pub fn in_backward(span: &Span) -> bool {
    span.frames
        .iter()
        .any(|frame| frame.in_file("torch/_tensor.py") && frame.function == "backward")
        || span
            .frames
            .iter()
            .any(|frame| frame.in_file("torch/autograd/__init__.py"))
}

/// Inside an optimizer of torch.
pub fn in_optimizer(span: &Span) -> bool {
    span.frames.iter().any(|frame| {
        frame.package() == Some("torch")
            && frame.file.contains("torch/optim/")
            && !frame.in_file("lr_scheduler.py")
    })
}

/// The source of lines that samples fell on.
struct Lines<'a>(BTreeMap<(&'a str, u32), &'a SourceLine>, Vec<&'a SourceLine>);

impl<'a> Lines<'a> {
    fn of(data: &'a RunData) -> Self {
        let key = |line: &'a SourceLine| ((line.file.as_str(), line.line), line);
        let makes = data.lines.iter().filter(|line| !line.makes.is_empty());
        Self(data.lines.iter().map(key).collect(), makes.collect())
    }

    /// The lines that make an object of this class.
    fn making(&self, class: &str) -> impl Iterator<Item = Place> + use<'_> {
        let class = class.to_owned();
        let made = self.1.iter().filter(move |line| line.makes.contains(&class));
        made.map(|line| Place::new(line.file.clone(), line.line))
    }

    fn get(&self, frame: &Frame) -> Option<&'a SourceLine> {
        self.0.get(&(frame.file.as_str(), frame.line)).copied()
    }

    /// The outermost loop around a line after the first `skipped` ones, one that is not over modules if there is one.
    fn inner_loop(&self, frame: &Frame, skipped: usize) -> Option<&'a SourceLoop> {
        let inner = self.get(frame)?.loops.get(skipped..)?;
        let over_data = inner.iter().find(|inner| !is_over_modules(&inner.text));
        over_data.or(inner.first())
    }
}

/// A loop over the model's own parts is the model.
pub fn is_over_modules(header: &str) -> bool {
    const PARTS: [&str; 12] = [
        "layers", "blocks", "modules", "children", "stages", "convs", "heads", "encoders", "decoders",
        "towers", "experts", "cells",
    ];
    let Some((_, over)) = header.split_once(" in ") else {
        return false;
    };
    !over.contains("range(") && PARTS.iter().any(|part| over.contains(part))
}

/// How many loops, from the outside, nearly all of the training loop's function is in: epochs and batches.
fn shared_loops(account: &Account, trunk: &Trunk, lines: &Lines) -> usize {
    let stepping = |span: &&Span| in_backward(span) || in_optimizer(span) || span.phase == Some(Phase::Data);
    let mut sites = account
        .spans
        .iter()
        .filter(stepping)
        .filter_map(|span| trunk.site(span))
        .peekable();
    if sites.peek().is_none() {
        return repeated(account, trunk, lines).map_or(0, |(_, depth)| depth);
    }
    // The header of the loop over batches is not inside of it: the deepest line counts.
    let depths = sites
        .filter_map(|site| lines.get(site))
        .map(|line| line.loops.len());
    depths.max().unwrap_or(0)
}

/// Without a step to go by: the innermost loop that nearly all of the time is in, and how many there are from the outside.
fn repeated<'a>(account: &Account, trunk: &Trunk, lines: &Lines<'a>) -> Option<(&'a SourceLoop, usize)> {
    let sites: Vec<(&Frame, f64)> = account
        .spans
        .iter()
        .filter_map(|span| Some((trunk.site(span)?, span.seconds)))
        .collect();
    let all: f64 = sites.iter().map(|(_, seconds)| seconds).sum();
    let loops = &lines.get(heaviest(sites.iter().copied())?)?.loops;
    let held = |depth: usize| {
        let inside = sites.iter().filter(|(site, _)| {
            let line = lines.get(site);
            line.is_some_and(|line| line.loops.get(..depth) == Some(&loops[..depth]))
        });
        inside.map(|(_, seconds)| seconds).sum::<f64>()
    };
    let depth = (1..=loops.len())
        .rev()
        .find(|depth| held(*depth) >= all * REPEATED)?;
    Some((&loops[depth - 1], depth))
}

/// Iterations of a loop whose steps nothing counts.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Iterations {
    /// The header of the loop.
    pub place: Place,
    /// How long one takes, about.
    pub ms: f64,
}

impl Iterations {
    /// From the order in which samples fall on the lines of the loop: it begins again where a line comes before the last one. `None`
    /// where an iteration is too short to be told from the next one.
    pub fn of(account: &Account, data: &RunData) -> Option<Self> {
        let lines = Lines::of(data);
        let trunk = Trunk::of(&account.spans);
        let (header, depth) = repeated(account, &trunk, &lines)?;
        let timeline = data
            .timelines
            .iter()
            .filter(|timeline| timeline.steps == 0)
            .max_by(|a, b| a.us.total_cmp(&b.us))?;
        let sites: Vec<Option<Frame>> = timeline
            .stacks
            .iter()
            .map(|frames| {
                let frames = frames.iter().filter_map(|text| Frame::parse(text)).collect();
                trunk.site(&Span::of_frames(frames)).cloned()
            })
            .collect();
        let inside = timeline.host.iter().filter_map(|slice| {
            let site = sites.get(slice.stack)?.as_ref()?;
            let line = lines.get(site)?;
            (line.loops.get(depth - 1) == Some(header)).then_some((site, slice.us))
        });
        let inside: Vec<(&Frame, f64)> = inside.collect();
        let place = Place::new(inside.first()?.0.file.clone(), header.line);
        let ms = round_ms(inside.iter().map(|(site, us)| (site.line, *us)))?;
        Some(Self { place, ms })
    }
}

/// How long one round through these lines takes, from samples of them in a row: the line of each and its microseconds.
fn round_ms(slices: impl Iterator<Item = (u32, f64)>) -> Option<f64> {
    let slices: Vec<(u32, f64)> = slices.collect();
    let begun = slices.windows(2).filter(|pair| pair[1].0 < pair[0].0).count() as f64;
    let all: f64 = slices.iter().map(|(_, us)| us).sum();
    let period = slices.iter().map(|(_, us)| *us).fold(f64::INFINITY, f64::min);
    let mut share: BTreeMap<u32, f64> = BTreeMap::new();
    for (line, us) in &slices {
        *share.entry(*line).or_default() += us / all;
    }
    // Rounds shorter than the time between samples leave each sample on any line, whatever the one before: as many seem to begin as
    // chance makes.
    let mut later = 1.0;
    let mut by_chance = 0.0;
    for part in share.values() {
        later -= part;
        by_chance += part * later;
    }
    let ms = all / 1e3 / begun;
    let told_apart = begun < all / period * by_chance * BY_CHANCE;
    (begun >= FEWEST_ROUNDS && told_apart && ms.is_finite()).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_iterations_if_samples_separate_them() {
        // Ten samples on line 5, then six on line 7, 4 ms each.
        let rounds = (0..20).flat_map(|_| [(5, 40_000.0), (7, 20_000.0), (8, 4_000.0)]);
        let ms = round_ms(rounds).unwrap();
        assert!((ms - 64.0 * 20.0 / 19.0).abs() < 0.1, "{ms}");
    }

    #[test]
    fn rounds_shorter_than_the_samples_stay_unknown() {
        // Each sample falls on either line by chance.
        let mut state = 7_u32;
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        let mut slices: Vec<(u32, f64)> = Vec::new();
        for _ in 0..600 {
            let line = if draw() % 10 < 8 { 5 } else { 7 };
            match slices.last_mut() {
                Some(last) if last.0 == line => last.1 += 4_000.0,
                _ => slices.push((line, 4_000.0)),
            }
        }
        assert_eq!(round_ms(slices.into_iter()), None);
        assert_eq!(round_ms(std::iter::empty()), None);
    }
}
