//! A Python file as a flat list of nodes in source order: a node's descendants are the ids up to its `end`, so that walking
//! a part of the file is walking a range. Names are spans of the text, not copies.

/// Bytes `start..end` of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    pub fn text(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    In,
    NotIn,
    Is,
    IsNot,
    Other,
}

#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// From the opening parenthesis to the closing one, both included.
    pub span: Span,
    pub positional: Vec<NodeId>,
    /// `name=value`; `None` is `**value`.
    pub keywords: Vec<(Option<Span>, NodeId)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: Span,
    pub annotation: Option<NodeId>,
    pub default: Option<NodeId>,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: Span,
    pub parameters: Vec<Parameter>,
    pub decorators: Vec<NodeId>,
    pub body: Vec<NodeId>,
}

#[derive(Clone, Debug)]
pub struct Class {
    pub name: Span,
    pub bases: Vec<NodeId>,
    pub decorators: Vec<NodeId>,
    pub body: Vec<NodeId>,
}

/// `for target in iterator if conditions` of a comprehension.
#[derive(Clone, Debug)]
pub struct Generator {
    pub target: NodeId,
    pub iterator: NodeId,
    pub conditions: Vec<NodeId>,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Module,
    Function(Box<Function>),
    Class(Box<Class>),
    Lambda(NodeId),
    Return(Option<NodeId>),
    Assign {
        targets: Vec<NodeId>,
        value: NodeId,
    },
    AugmentedAssign {
        target: NodeId,
        operator: Operator,
        value: NodeId,
    },
    AnnotatedAssign {
        target: NodeId,
        annotation: NodeId,
        value: Option<NodeId>,
    },
    For {
        target: NodeId,
        iterator: NodeId,
        body: Vec<NodeId>,
    },
    While {
        test: NodeId,
        body: Vec<NodeId>,
    },
    /// `if`, each `elif`, and `else` with no test.
    If(Vec<(Option<NodeId>, Vec<NodeId>)>),
    With {
        items: Vec<(NodeId, Option<NodeId>)>,
        body: Vec<NodeId>,
    },
    Try {
        body: Vec<NodeId>,
    },
    /// `except …:` and what it does.
    Handler,
    /// `import a.b as c`: the bindings resolve each name.
    Import {
        /// `(module, bound name, whether "as" was written)`.
        names: Vec<(Box<str>, Span, bool)>,
    },
    ImportFrom {
        module: Box<str>,
        level: u32,
        /// `(name, bound name)`; `*` is bound as `*`.
        names: Vec<(Box<str>, Span)>,
    },
    Expression(NodeId),
    Break,
    Continue,
    Raise,
    Name,
    Attribute {
        value: NodeId,
        name: Span,
    },
    Call {
        function: NodeId,
        arguments: Box<Arguments>,
    },
    Subscript {
        value: NodeId,
        index: NodeId,
    },
    Text(Box<str>),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    None,
    Compare {
        left: NodeId,
        operators: Vec<Operator>,
        comparators: Vec<NodeId>,
    },
    Logical(Vec<NodeId>),
    Not(NodeId),
    Negative(NodeId),
    Binary {
        operator: Operator,
        left: NodeId,
        right: NodeId,
    },
    Conditional {
        test: NodeId,
        body: NodeId,
        otherwise: NodeId,
    },
    Sequence(Vec<NodeId>),
    Dict(Vec<(Option<NodeId>, NodeId)>),
    Comprehension {
        elements: Vec<NodeId>,
        generators: Vec<Generator>,
    },
    /// An f-string; its expressions are the children.
    Formatted,
    Starred(NodeId),
    Other,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    pub span: Span,
    parent: u32,
    /// One past the last descendant.
    end: u32,
}

/// The nodes of one file. Node 0 is the module.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    calls: Vec<NodeId>,
    loops: Vec<NodeId>,
    functions: Vec<NodeId>,
    classes: Vec<NodeId>,
}

const NO_PARENT: u32 = u32::MAX;

impl Tree {
    /// Opens a node; its children are opened before [`Tree::close`] is called on it.
    pub(super) fn open(&mut self, parent: Option<NodeId>, span: Span) -> NodeId {
        let id = self.nodes.len() as u32;
        self.nodes.push(Node {
            kind: Kind::Other,
            span,
            parent: parent.map_or(NO_PARENT, |parent| parent.0),
            end: id + 1,
        });
        NodeId(id)
    }

    pub(super) fn close(&mut self, id: NodeId, kind: Kind) -> NodeId {
        match &kind {
            Kind::Call { .. } => self.calls.push(id),
            Kind::For { .. } | Kind::While { .. } => self.loops.push(id),
            Kind::Function(_) => self.functions.push(id),
            Kind::Class(_) => self.classes.push(id),
            _ => {}
        }
        let end = self.nodes.len() as u32;
        let node = &mut self.nodes[id.0 as usize];
        node.kind = kind;
        node.end = end;
        id
    }

    /// Puts the lists in source order: they were filled as nodes closed.
    pub(super) fn finish(&mut self) {
        for list in [
            &mut self.calls,
            &mut self.loops,
            &mut self.functions,
            &mut self.classes,
        ] {
            list.sort_unstable();
        }
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub fn kind(&self, id: NodeId) -> &Kind {
        &self.node(id).kind
    }

    pub fn span(&self, id: NodeId) -> Span {
        self.node(id).span
    }

    pub fn end(&self, id: NodeId) -> NodeId {
        NodeId(self.node(id).end)
    }

    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        let parent = self.node(id).parent;
        (parent != NO_PARENT).then_some(NodeId(parent))
    }

    /// The node's parent, its parent's parent, up to the module.
    pub fn ancestors(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.parent(id), |id| self.parent(*id))
    }

    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The node and all below it, nested functions too.
    pub fn subtree(&self, id: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        (id.0..self.node(id).end).map(NodeId)
    }

    /// All below the node, leaving out the bodies of functions, lambdas and classes defined there: what runs when it runs.
    pub fn runs(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let end = self.node(id).end;
        let mut next = id.0 + 1;
        std::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let current = NodeId(next);
            next = match self.kind(current) {
                Kind::Function(_) | Kind::Class(_) | Kind::Lambda(_) => self.node(current).end,
                _ => next + 1,
            };
            Some(current)
        })
    }

    pub fn contains(&self, outer: NodeId, inner: NodeId) -> bool {
        outer <= inner && inner.0 < self.node(outer).end
    }

    pub fn calls(&self) -> &[NodeId] {
        &self.calls
    }

    /// The calls at or below a node.
    pub fn calls_in(&self, id: NodeId) -> &[NodeId] {
        let end = self.end(id);
        let first = self.calls.partition_point(|call| *call < id);
        let last = self.calls.partition_point(|call| *call < end);
        &self.calls[first..last]
    }

    pub fn loops(&self) -> &[NodeId] {
        &self.loops
    }

    pub fn functions(&self) -> &[NodeId] {
        &self.functions
    }

    pub fn classes(&self) -> &[NodeId] {
        &self.classes
    }

    /// The function, lambda, class or module that the node's names live in.
    pub fn scope(&self, id: NodeId) -> NodeId {
        self.ancestors(id)
            .find(|id| {
                matches!(
                    self.kind(*id),
                    Kind::Function(_) | Kind::Class(_) | Kind::Lambda(_) | Kind::Module
                )
            })
            .unwrap_or(NodeId(0))
    }

    /// The innermost function around the node.
    pub fn function_around(&self, id: NodeId) -> Option<NodeId> {
        self.ancestors(id)
            .find(|id| matches!(self.kind(*id), Kind::Function(_)))
    }

    /// The class whose method the node is in.
    pub fn class_around(&self, id: NodeId) -> Option<NodeId> {
        self.ancestors(id)
            .find(|id| matches!(self.kind(*id), Kind::Class(_)))
    }

    /// The statement that the node is part of (or is).
    pub fn statement(&self, id: NodeId) -> NodeId {
        std::iter::once(id)
            .chain(self.ancestors(id))
            .find(|id| {
                matches!(
                    self.kind(*id),
                    Kind::Function(_)
                        | Kind::Class(_)
                        | Kind::Return(_)
                        | Kind::Assign { .. }
                        | Kind::AugmentedAssign { .. }
                        | Kind::AnnotatedAssign { .. }
                        | Kind::For { .. }
                        | Kind::While { .. }
                        | Kind::If(_)
                        | Kind::With { .. }
                        | Kind::Try { .. }
                        | Kind::Expression(_)
                        | Kind::Module
                        | Kind::Raise
                        | Kind::Import { .. }
                        | Kind::ImportFrom { .. }
                )
            })
            .unwrap_or(NodeId(0))
    }
}
