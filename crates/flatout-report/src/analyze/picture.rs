//! The charts of an analysis as a PNG file.

use super::Analysis;
use crate::digest::Digest;
use crate::picture::Picture;
use crate::text::width::printable;

/// Curves of the digest, epochs of every section.
pub fn of<'a>(analysis: &'a Analysis, digest: Option<&'a Digest>) -> Picture<'a> {
    let epochs = analysis.sections.iter().filter_map(|section| {
        let name = section.path.file_name().unwrap_or(section.path.as_os_str());
        Some((printable(&name.to_string_lossy()), section.epochs.as_ref()?))
    });
    let title = analysis
        .sections
        .first()
        .map_or("", |section| section.title.as_str());
    Picture {
        title: printable(title),
        charts: digest.map_or(&[], |digest| &digest.charts),
        length_s: digest.and_then(|digest| digest.length_s).unwrap_or(1.0),
        epochs: epochs.collect(),
    }
}
