//! From the parser's tree to ours. The only file that names the parser's types: its API changes from version to version.

use super::tree::{Arguments, Class, Function, Generator, Kind, NodeId, Operator, Parameter, Span, Tree};
use super::{SyntaxError, nesting};
use ruff_python_ast as ast;
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{ExceptHandler, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

/// No person writes deeper nesting than this; deeper code is skipped rather than overflow the stack.
const DEEPEST: usize = 400;

pub(super) struct Lowered {
    pub tree: Tree,
    pub comments: Vec<Span>,
    pub errors: Vec<SyntaxError>,
    pub too_deep: bool,
}

impl Lowered {
    /// A file that is not parsed at all.
    fn too_deep(text: &str) -> Self {
        let mut tree = Tree::default();
        let root = tree.open(None, Span::new(0, text.len()));
        tree.close(root, Kind::Module);
        tree.finish();
        Self {
            tree,
            comments: Vec::new(),
            errors: vec![SyntaxError {
                at: Span::new(0, 0),
                text: format!("the file is nested more than {} levels deep", nesting::DEEPEST),
            }],
            too_deep: true,
        }
    }
}

pub(super) fn lower(text: &str) -> Lowered {
    if nesting::is_too_deep(text) {
        return Lowered::too_deep(text);
    }
    let parsed = ruff_python_parser::parse_unchecked_source(text, ast::PySourceType::Python);
    let errors = parsed
        .errors()
        .iter()
        .map(|error| SyntaxError {
            at: span(error.location),
            text: error.error.to_string(),
        })
        .collect();
    let comments = parsed
        .tokens()
        .iter()
        .filter(|token| token.kind() == TokenKind::Comment)
        .map(|token| span(token.range()))
        .collect();
    let mut lowering = Lowering {
        tree: Tree::default(),
        depth: 0,
        too_deep: false,
    };
    let root = lowering.tree.open(None, Span::new(0, text.len()));
    lowering.body(root, &parsed.syntax().body);
    lowering.tree.close(root, Kind::Module);
    lowering.tree.finish();
    if lowering.too_deep {
        // Dropping such a tree recurses as deep as it is nested and would overflow the stack.
        std::mem::forget(parsed);
    }
    Lowered {
        tree: lowering.tree,
        comments,
        errors,
        too_deep: false,
    }
}

fn span(range: TextRange) -> Span {
    Span::new(range.start().to_usize(), range.end().to_usize())
}

struct Lowering {
    tree: Tree,
    depth: usize,
    too_deep: bool,
}

impl Lowering {
    fn body(&mut self, parent: NodeId, body: &[Stmt]) -> Vec<NodeId> {
        body.iter()
            .map(|statement| self.statement(parent, statement))
            .collect()
    }

    fn expressions<'a>(&mut self, parent: NodeId, list: impl IntoIterator<Item = &'a Expr>) -> Vec<NodeId> {
        list.into_iter().map(|one| self.expression(parent, one)).collect()
    }

    fn optional(&mut self, parent: NodeId, expression: Option<&Expr>) -> Option<NodeId> {
        expression.map(|expression| self.expression(parent, expression))
    }

    /// Opens a node, lets `fill` lower the children, closes it; beyond the deepest nesting the children are left out.
    fn node(
        &mut self,
        parent: NodeId,
        range: TextRange,
        fill: impl FnOnce(&mut Self, NodeId) -> Kind,
    ) -> NodeId {
        let id = self.tree.open(Some(parent), span(range));
        if self.depth >= DEEPEST {
            self.too_deep = true;
            return self.tree.close(id, Kind::Other);
        }
        self.depth += 1;
        let kind = fill(self, id);
        self.depth -= 1;
        self.tree.close(id, kind)
    }

    fn statement(&mut self, parent: NodeId, statement: &Stmt) -> NodeId {
        self.node(parent, statement.range(), |lowering, id| {
            lowering.statement_kind(id, statement)
        })
    }

    fn statement_kind(&mut self, id: NodeId, statement: &Stmt) -> Kind {
        match statement {
            Stmt::FunctionDef(function) => self.function(id, function),
            Stmt::ClassDef(class) => self.class(id, class),
            Stmt::Return(node) => Kind::Return(self.optional(id, node.value.as_deref())),
            Stmt::Assign(node) => {
                let targets = self.expressions(id, &node.targets);
                let value = self.expression(id, &node.value);
                Kind::Assign { targets, value }
            }
            Stmt::AugAssign(node) => Kind::AugmentedAssign {
                target: self.expression(id, &node.target),
                operator: binary_operator(node.op),
                value: self.expression(id, &node.value),
            },
            Stmt::AnnAssign(node) => Kind::AnnotatedAssign {
                target: self.expression(id, &node.target),
                annotation: self.expression(id, &node.annotation),
                value: self.optional(id, node.value.as_deref()),
            },
            Stmt::For(node) => {
                let target = self.expression(id, &node.target);
                let iterator = self.expression(id, &node.iter);
                let body = self.body(id, &node.body);
                self.body(id, &node.orelse);
                Kind::For {
                    target,
                    iterator,
                    body,
                }
            }
            Stmt::While(node) => {
                let test = self.expression(id, &node.test);
                let body = self.body(id, &node.body);
                self.body(id, &node.orelse);
                Kind::While { test, body }
            }
            Stmt::If(node) => {
                let test = self.expression(id, &node.test);
                let mut clauses = vec![(Some(test), self.body(id, &node.body))];
                for clause in &node.elif_else_clauses {
                    let test = self.optional(id, clause.test.as_ref());
                    clauses.push((test, self.body(id, &clause.body)));
                }
                Kind::If(clauses)
            }
            Stmt::With(node) => {
                let items = node.items.iter().map(|item| {
                    let context = self.expression(id, &item.context_expr);
                    (context, self.optional(id, item.optional_vars.as_deref()))
                });
                let items = items.collect();
                Kind::With {
                    items,
                    body: self.body(id, &node.body),
                }
            }
            Stmt::Try(node) => self.attempt(id, node),
            Stmt::Import(node) => Kind::Import {
                names: node.names.iter().map(imported).collect(),
            },
            Stmt::ImportFrom(node) => Kind::ImportFrom {
                module: node.module.as_ref().map_or("", |module| module.as_str()).into(),
                level: node.level,
                names: node
                    .names
                    .iter()
                    .map(|alias| {
                        let bound = alias.asname.as_ref().unwrap_or(&alias.name);
                        (alias.name.as_str().into(), span(bound.range()))
                    })
                    .collect(),
            },
            Stmt::Expr(node) => Kind::Expression(self.expression(id, &node.value)),
            Stmt::Raise(node) => {
                self.optional(id, node.exc.as_deref());
                self.optional(id, node.cause.as_deref());
                Kind::Raise
            }
            Stmt::Break(_) => Kind::Break,
            Stmt::Continue(_) => Kind::Continue,
            other => self.other_statement(id, other),
        }
    }

    fn other_statement(&mut self, id: NodeId, statement: &Stmt) -> Kind {
        match statement {
            Stmt::Delete(node) => {
                self.expressions(id, &node.targets);
            }
            Stmt::Assert(node) => {
                self.expression(id, &node.test);
                self.optional(id, node.msg.as_deref());
            }
            Stmt::Match(node) => {
                self.expression(id, &node.subject);
                for case in &node.cases {
                    self.optional(id, case.guard.as_deref());
                    self.body(id, &case.body);
                }
            }
            _ => {}
        }
        Kind::Other
    }

    fn attempt(&mut self, id: NodeId, node: &ast::StmtTry) -> Kind {
        let body = self.body(id, &node.body);
        for ExceptHandler::ExceptHandler(handler) in &node.handlers {
            self.node(id, handler.range(), |lowering, id| {
                lowering.optional(id, handler.type_.as_deref());
                lowering.body(id, &handler.body);
                Kind::Handler
            });
        }
        self.body(id, &node.orelse);
        self.body(id, &node.finalbody);
        Kind::Try { body }
    }

    fn function(&mut self, id: NodeId, node: &ast::StmtFunctionDef) -> Kind {
        let decorators = self.expressions(id, node.decorator_list.iter().map(|one| &one.expression));
        let parameters = self.parameters(id, &node.parameters);
        self.optional(id, node.returns.as_deref());
        Kind::Function(Box::new(Function {
            name: span(node.name.range()),
            parameters,
            decorators,
            body: self.body(id, &node.body),
        }))
    }

    fn class(&mut self, id: NodeId, node: &ast::StmtClassDef) -> Kind {
        let decorators = self.expressions(id, node.decorator_list.iter().map(|one| &one.expression));
        let mut bases = Vec::new();
        if let Some(arguments) = &node.arguments {
            bases = self.expressions(id, &arguments.args);
            self.expressions(id, arguments.keywords.iter().map(|keyword| &keyword.value));
        }
        Kind::Class(Box::new(Class {
            name: span(node.name.range()),
            bases,
            decorators,
            body: self.body(id, &node.body),
        }))
    }

    fn parameters(&mut self, id: NodeId, parameters: &ast::Parameters) -> Vec<Parameter> {
        let plain = parameters.posonlyargs.iter().chain(&parameters.args);
        let mut found = Vec::new();
        for one in plain.chain(&parameters.kwonlyargs) {
            let annotation = self.optional(id, one.parameter.annotation.as_deref());
            let default = self.optional(id, one.default.as_deref());
            found.push(Parameter {
                name: span(one.parameter.name.range()),
                annotation,
                default,
            });
        }
        for one in [&parameters.vararg, &parameters.kwarg].into_iter().flatten() {
            let annotation = self.optional(id, one.annotation.as_deref());
            found.push(Parameter {
                name: span(one.name.range()),
                annotation,
                default: None,
            });
        }
        found
    }

    fn expression(&mut self, parent: NodeId, expression: &Expr) -> NodeId {
        self.node(parent, expression.range(), |lowering, id| {
            lowering.expression_kind(id, expression)
        })
    }

    fn expression_kind(&mut self, id: NodeId, expression: &Expr) -> Kind {
        match expression {
            Expr::Name(_) => Kind::Name,
            Expr::Attribute(node) => Kind::Attribute {
                value: self.expression(id, &node.value),
                name: span(node.attr.range()),
            },
            Expr::Call(node) => {
                let function = self.expression(id, &node.func);
                let arguments = Box::new(self.arguments(id, &node.arguments));
                Kind::Call { function, arguments }
            }
            Expr::Subscript(node) => Kind::Subscript {
                value: self.expression(id, &node.value),
                index: self.expression(id, &node.slice),
            },
            Expr::StringLiteral(node) => Kind::Text(node.value.to_str().into()),
            Expr::NumberLiteral(node) => match &node.value {
                ast::Number::Int(value) => value.as_i64().map_or(Kind::Other, Kind::Integer),
                ast::Number::Float(value) => Kind::Float(*value),
                ast::Number::Complex { .. } => Kind::Other,
            },
            Expr::BooleanLiteral(node) => Kind::Boolean(node.value),
            Expr::NoneLiteral(_) => Kind::None,
            Expr::Compare(node) => {
                let left = self.expression(id, &node.left);
                let operators = node
                    .ops
                    .iter()
                    .map(|operator| compare_operator(*operator))
                    .collect();
                Kind::Compare {
                    left,
                    operators,
                    comparators: self.expressions(id, &*node.comparators),
                }
            }
            Expr::BoolOp(node) => Kind::Logical(self.expressions(id, &node.values)),
            Expr::UnaryOp(node) => {
                let operand = self.expression(id, &node.operand);
                match node.op {
                    ast::UnaryOp::Not => Kind::Not(operand),
                    ast::UnaryOp::USub => Kind::Negative(operand),
                    _ => Kind::Other,
                }
            }
            Expr::BinOp(node) => Kind::Binary {
                left: self.expression(id, &node.left),
                operator: binary_operator(node.op),
                right: self.expression(id, &node.right),
            },
            Expr::If(node) => Kind::Conditional {
                body: self.expression(id, &node.body),
                test: self.expression(id, &node.test),
                otherwise: self.expression(id, &node.orelse),
            },
            Expr::List(node) => Kind::Sequence(self.expressions(id, &node.elts)),
            Expr::Tuple(node) => Kind::Sequence(self.expressions(id, &node.elts)),
            Expr::Set(node) => Kind::Sequence(self.expressions(id, &node.elts)),
            Expr::Dict(node) => {
                let items = node.items.iter().map(|item| {
                    let key = self.optional(id, item.key.as_ref());
                    (key, self.expression(id, &item.value))
                });
                Kind::Dict(items.collect())
            }
            Expr::Starred(node) => Kind::Starred(self.expression(id, &node.value)),
            Expr::Lambda(node) => {
                if let Some(parameters) = &node.parameters {
                    self.parameters(id, parameters);
                }
                Kind::Lambda(self.expression(id, &node.body))
            }
            other => self.other_expression(id, other),
        }
    }

    fn other_expression(&mut self, id: NodeId, expression: &Expr) -> Kind {
        match expression {
            Expr::ListComp(node) => self.comprehension(id, [&*node.elt], &node.generators),
            Expr::SetComp(node) => self.comprehension(id, [&*node.elt], &node.generators),
            Expr::Generator(node) => self.comprehension(id, [&*node.elt], &node.generators),
            Expr::DictComp(node) => {
                let elements = node.key.as_deref().into_iter().chain([&*node.value]);
                self.comprehension(id, elements, &node.generators)
            }
            Expr::FString(node) => {
                for element in node.value.elements() {
                    if let ast::InterpolatedStringElement::Interpolation(part) = element {
                        self.expression(id, &part.expression);
                    }
                }
                Kind::Formatted
            }
            Expr::Named(node) => {
                let targets = vec![self.expression(id, &node.target)];
                Kind::Assign {
                    targets,
                    value: self.expression(id, &node.value),
                }
            }
            Expr::Await(node) => {
                self.expression(id, &node.value);
                Kind::Other
            }
            Expr::Yield(node) => {
                self.optional(id, node.value.as_deref());
                Kind::Other
            }
            Expr::YieldFrom(node) => {
                self.expression(id, &node.value);
                Kind::Other
            }
            Expr::Slice(node) => {
                for part in [&node.lower, &node.upper, &node.step] {
                    self.optional(id, part.as_deref());
                }
                Kind::Other
            }
            _ => Kind::Other,
        }
    }

    fn comprehension<'a>(
        &mut self,
        id: NodeId,
        elements: impl IntoIterator<Item = &'a Expr>,
        generators: &[ast::Comprehension],
    ) -> Kind {
        let elements = self.expressions(id, elements);
        let generators = generators.iter().map(|one| Generator {
            target: self.expression(id, &one.target),
            iterator: self.expression(id, &one.iter),
            conditions: self.expressions(id, &one.ifs),
        });
        Kind::Comprehension {
            generators: generators.collect(),
            elements,
        }
    }

    fn arguments(&mut self, id: NodeId, arguments: &ast::Arguments) -> Arguments {
        let keywords = arguments.keywords.iter();
        Arguments {
            span: span(arguments.range()),
            positional: self.expressions(id, &*arguments.args),
            keywords: keywords
                .map(|keyword| {
                    let name = keyword.arg.as_ref().map(|name| span(name.range()));
                    (name, self.expression(id, &keyword.value))
                })
                .collect(),
        }
    }
}

fn imported(alias: &ast::Alias) -> (Box<str>, Span, bool) {
    let bound = alias.asname.as_ref().unwrap_or(&alias.name);
    (
        alias.name.as_str().into(),
        span(bound.range()),
        alias.asname.is_some(),
    )
}

fn binary_operator(operator: ast::Operator) -> Operator {
    match operator {
        ast::Operator::Add => Operator::Add,
        ast::Operator::Sub => Operator::Subtract,
        ast::Operator::Mult => Operator::Multiply,
        ast::Operator::Div => Operator::Divide,
        ast::Operator::Mod => Operator::Modulo,
        _ => Operator::Other,
    }
}

fn compare_operator(operator: ast::CmpOp) -> Operator {
    match operator {
        ast::CmpOp::Eq => Operator::Equal,
        ast::CmpOp::NotEq => Operator::NotEqual,
        ast::CmpOp::Lt | ast::CmpOp::LtE => Operator::Less,
        ast::CmpOp::In => Operator::In,
        ast::CmpOp::NotIn => Operator::NotIn,
        ast::CmpOp::Is => Operator::Is,
        ast::CmpOp::IsNot => Operator::IsNot,
        _ => Operator::Other,
    }
}
