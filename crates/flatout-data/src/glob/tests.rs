use crate::glob::Glob;
use proptest::prelude::*;

fn fits(pattern: &str, name: &str) -> bool {
    Glob::parse(pattern).unwrap().matches(name)
}

#[test]
fn every_sign() {
    assert!(fits("*.parquet", "600000.parquet"));
    assert!(fits("log_*_4?.csv", "log_standard_4_22_41.csv"));
    assert!(!fits("*.csv", "a.csv.gz"));
    assert!(!fits("?", "") && fits("?", "价"));
    assert!(fits("part[0-9].csv", "part7.csv") && !fits("part[0-9].csv", "partx.csv"));
    assert!(fits("[!a-c]*", "data") && !fits("[^a-c]*", "apple"));
    assert!(fits("[]x]", "]") && fits("[a-]", "-") && fits("[*]", "*") && !fits("[*]", "a"));
    assert!(
        fits("{a,b{1,2}}.csv", "b2.csv")
            && fits("{a,b{1,2}}.csv", "a.csv")
            && !fits("{a,b{1,2}}.csv", "b.csv")
    );
    assert!(fits("log{,_extra}.csv", "log.csv") && fits("log{,_extra}.csv", "log_extra.csv"));
    assert!(fits("[{]a,b}", "{a,b}"));
    assert!(!fits("*", ".hidden") && fits(".*", ".hidden"));
}

#[test]
fn what_is_malformed_is_refused_with_the_reason() {
    let says = |pattern: &str| Glob::parse(pattern).unwrap_err().to_string();
    assert!(says("part[0-9.csv").contains("`part[0-9.csv`") && says("[").contains("`[` is not closed"));
    assert!(says("[]").contains("not closed") && says("[a/b]").contains("not closed"));
    assert!(says("{a,b").contains("`{` is not closed"), "{}", says("{a,b"));
    assert!(says("part[9-0].csv").contains("`9-0` is reversed"));
    assert!(says("a**.csv").contains("whole folders"));
    assert!(says(&"{a,b}".repeat(40)).contains("more than 1000"));
}

/// One pattern as a tree, with the plain answer to whether a name fits: each way is tried.
#[derive(Debug, Clone)]
enum Node {
    Char(char),
    One,
    Any,
    Class(bool, char, char),
    Choice(Vec<Vec<Node>>),
}

fn text(nodes: &[Node]) -> String {
    let one = |node: &Node| match node {
        Node::Char(char) => char.to_string(),
        Node::One => "?".into(),
        Node::Any => "*".into(),
        Node::Class(negated, low, high) => format!("[{}{low}-{high}]", if *negated { "!" } else { "" }),
        Node::Choice(choices) => {
            let choices: Vec<String> = choices.iter().map(|choice| text(choice)).collect();
            format!("{{{}}}", choices.join(","))
        }
    };
    nodes.iter().map(one).collect()
}

fn accepts(nodes: &[Node], name: &[char]) -> bool {
    let Some((node, rest)) = nodes.split_first() else {
        return name.is_empty();
    };
    let one = |fits: &dyn Fn(char) -> bool| {
        name.first().is_some_and(|&char| fits(char)) && accepts(rest, &name[1..])
    };
    match node {
        Node::Char(wanted) => one(&|char| char == *wanted),
        Node::One => one(&|_| true),
        Node::Class(negated, low, high) => one(&|char| (*low..=*high).contains(&char) != *negated),
        Node::Any => (0..=name.len()).any(|taken| accepts(rest, &name[taken..])),
        Node::Choice(choices) => choices
            .iter()
            .any(|choice| accepts(&[choice.as_slice(), rest].concat(), name)),
    }
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!['a', 'b', 'c', '1']).prop_map(Node::Char),
        1 => Just(Node::One),
        2 => Just(Node::Any),
        1 => (any::<bool>(), prop::sample::select(vec![('a', 'b'), ('b', 'c'), ('0', '9')]))
            .prop_map(|(negated, (low, high))| Node::Class(negated, low, high)),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop::collection::vec(prop::collection::vec(inner, 0..3), 1..3).prop_map(Node::Choice)
    })
}

proptest! {
    #[test]
    fn fits_what_trying_every_way_fits(nodes in prop::collection::vec(node(), 0..5), name in "[abc1]{1,6}") {
        let pattern = text(&nodes);
        // Two stars side by side mean folders; that is another test's matter.
        prop_assume!(!super::alternatives(&pattern).unwrap().iter().any(|one| one.contains("**")));
        let chars: Vec<char> = name.chars().collect();
        prop_assert_eq!(fits(&pattern, &name), accepts(&nodes, &chars), "{} {}", pattern, name);
    }

    #[test]
    fn any_text_is_a_pattern_or_refused(text in "[ab*?{},!/.\\[\\]^-]{0,24}", name in "[ab.{}-]{0,8}") {
        if let Ok(glob) = Glob::parse(&text) {
            glob.matches(&name);
        }
    }
}
