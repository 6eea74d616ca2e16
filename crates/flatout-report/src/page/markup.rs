//! HTML that escapes by construction: a [`Markup`] is made from literal templates only, and whatever fills a template is
//! escaped unless it is [`Markup`] itself.
//!
//! A template is checked by the compiler: it begins and ends outside of a tag, a value stands in text or in double quotes,
//! never as a part of a tag, and it contains no script and no style. `concat!` keeps variables from being named inside of a template, where they
//! would not be escaped.

use super::escape::{self, ScriptData};
use std::fmt::{self, Display, Formatter, Write as _};
use std::ops::{Add, AddAssign};

/// HTML, safe to be written into a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Markup(String);

/// `markup!("<td class=\"{}\">{}</td>", class, text)`: HTML with escaped values.
macro_rules! markup {
    ($template:literal $(, $value:expr)* $(,)?) => {{
        const _: () = assert!(
            $crate::page::markup::is_sound($template),
            "a value must stand in text or in double quotes, and a template must end outside of a tag"
        );
        $crate::page::markup::Markup::filled(::std::format_args!(
            ::std::concat!($template)
            $(, $crate::page::markup::Escaped(&$value))*
        ))
    }};
}
pub(crate) use markup;

impl Markup {
    /// For `markup!`, which has escaped the values.
    pub fn filled(template: fmt::Arguments<'_>) -> Self {
        Self(template.to_string())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_string(self) -> String {
        self.0
    }

    /// A style sheet that the program itself contains.
    pub fn style(parts: &[&'static str]) -> Self {
        Self(format!("<style>{}</style>\n", parts.concat()))
    }

    /// A script that the program itself contains.
    pub fn script(text: &'static str) -> Self {
        Self(format!("<script>{text}</script>\n"))
    }

    /// Values for a script, under the id `data`.
    pub fn data(data: &ScriptData) -> Self {
        Self(format!(
            "<script type=\"application/json\" id=\"data\">{}</script>\n",
            data.as_str()
        ))
    }
}

impl Add for Markup {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Markup {
    fn add_assign(&mut self, other: Self) {
        self.0 += &other.0;
    }
}

impl FromIterator<Markup> for Markup {
    fn from_iter<I: IntoIterator<Item = Markup>>(parts: I) -> Self {
        parts.into_iter().fold(Self::default(), Add::add)
    }
}

/// What may fill a template.
pub(crate) trait Fill {
    fn fill(&self, to: &mut Formatter<'_>) -> fmt::Result;
}

/// A value on its way into a template.
pub(crate) struct Escaped<T>(pub T);

impl<T: Fill> Display for Escaped<T> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        self.0.fill(to)
    }
}

impl Fill for Markup {
    fn fill(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl Fill for str {
    fn fill(&self, to: &mut Formatter<'_>) -> fmt::Result {
        escape::characters(self).try_for_each(|part| match part {
            escape::Part::Reference(reference) => to.write_str(reference),
            escape::Part::Character(character) => to.write_char(character),
        })
    }
}

impl Fill for String {
    fn fill(&self, to: &mut Formatter<'_>) -> fmt::Result {
        self.as_str().fill(to)
    }
}

impl<T: Fill + ?Sized> Fill for &T {
    fn fill(&self, to: &mut Formatter<'_>) -> fmt::Result {
        (**self).fill(to)
    }
}

/// Numbers have no character to escape, and keep the template's precision.
macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Fill for $number {
            fn fill(&self, to: &mut Formatter<'_>) -> fmt::Result {
                Display::fmt(self, to)
            }
        })*
    };
}

numbers!(f64, u32, u64, i32, i64, usize);

/// Whether every value of a template stands in text or inside double quotes.
pub(crate) const fn is_sound(template: &str) -> bool {
    let bytes = template.as_bytes();
    let (mut in_tag, mut in_quotes) = (false, false);
    let mut at = 0;
    while at < bytes.len() {
        let next = if at + 1 < bytes.len() { bytes[at + 1] } else { 0 };
        match bytes[at] {
            b'{' | b'}' if next == bytes[at] => at += 1,
            b'{' if in_tag && !in_quotes => return false,
            b'"' if in_tag => in_quotes = !in_quotes,
            b'\'' if in_tag && !in_quotes => return false,
            b'<' if in_tag || next == b'{' => return false,
            b'<' if begins_with(bytes, at + 1, b"script") || begins_with(bytes, at + 1, b"style") => {
                return false;
            }
            b'<' => in_tag = true,
            b'>' if !in_quotes => in_tag = false,
            _ => {}
        }
        at += 1;
    }
    !in_tag
}

const fn begins_with(bytes: &[u8], at: usize, name: &[u8]) -> bool {
    let mut index = 0;
    while index < name.len() {
        if at + index >= bytes.len() || !bytes[at + index].eq_ignore_ascii_case(&name[index]) {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_escaped_and_markup_is_not() {
        let cell = markup!("<td title=\"{}\">{:.1}</td>", "\"<b>\"", 1.25);
        assert_eq!(
            cell.clone().into_string(),
            "<td title=\"&quot;&lt;b&gt;&quot;\">1.2</td>"
        );
        assert_eq!(markup!("<tr>{}</tr>", cell.clone()), {
            markup!("<tr>") + cell + markup!("</tr>")
        });
        assert_eq!(
            markup!("{{{}}}", "a\u{202e}\x1b").into_string(),
            "{a\u{fffd}\u{fffd}}"
        );
        assert_eq!(
            markup!("{}", "<script>alert('1')</script>").into_string(),
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"
        );
    }

    #[test]
    fn templates_with_a_value_in_a_tag_are_refused() {
        for sound in ["", "{}", "<p>{}</p>", "<p class=\"a {}\">", "a > {}", "</div>{}"] {
            assert!(is_sound(sound), "{sound}");
        }
        for unsound in [
            "<p {}>",
            "<{}>",
            "<p class={}>",
            "<p class='{}'>",
            "<p",
            "<p class=\"",
            "<script>{}</script>",
            "<STYLE>{}</style>",
        ] {
            assert!(!is_sound(unsound), "{unsound}");
        }
    }

    proptest! {
        #[test]
        fn no_text_becomes_a_tag(text in any::<String>()) {
            let filled = markup!("<p class=\"{}\">{}</p>", text, text).into_string();
            prop_assert_eq!(filled.matches(['<', '>']).count(), 4);
            prop_assert_eq!(filled.matches('"').count(), 2);
            prop_assert_eq!(filled.matches('\'').count(), 0);
        }
    }
}
