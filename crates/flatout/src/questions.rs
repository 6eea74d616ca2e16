//! The page that `flatout` alone prints, and `--help`: the questions people come with, and the commands that answer them.

use crate::commands::{self, Question};
use flatout_core::{Language, Message, message};
use std::fmt::Write;

impl Question {
    pub const ALL: [Self; 6] = [
        Self::See,
        Self::Why,
        Self::Change,
        Self::Prove,
        Self::Train,
        Self::Other,
    ];

    fn title(self) -> Message {
        match self {
            Self::See => message!(en: "What is happening?", zh: "现在是什么情况？"),
            Self::Why => message!(en: "Why is the GPU idle?", zh: "GPU 为什么空闲？"),
            Self::Change => message!(en: "What should change?", zh: "应该改什么？"),
            Self::Prove => message!(en: "Did it help?", zh: "改了有用吗？"),
            Self::Train => message!(en: "Just train, fast", zh: "直接训练，全速"),
            Self::Other => message!(en: "And also", zh: "其他"),
        }
    }
}

fn tagline() -> Message {
    message!(
        en: "flatout keeps GPUs busy while models train: see, why, change, prove.",
        zh: "flatout 让 GPU 在训练时满负荷：看清、找因、改进、验证。"
    )
}

/// The questions, each with the first command that answers it.
pub fn page(language: Language) -> String {
    let mut text = format!("{}\n\n", tagline().get(language));
    for question in Question::ALL
        .into_iter()
        .filter(|question| *question != Question::Other)
    {
        if let Some((_, example)) = commands::EXAMPLES.iter().find(|(asked, _)| *asked == question) {
            let _ = writeln!(text, "  {}\n      {example}\n", question.title().get(language));
        }
    }
    let more = message!(en: "All commands: flatout --help", zh: "全部命令：flatout --help");
    let _ = writeln!(text, "{}", more.get(language));
    text
}

/// `--help`: all commands, grouped by question.
pub fn help(language: Language) -> String {
    let usage = message!(en: "Usage: flatout [OPTIONS] COMMAND …", zh: "用法：flatout [选项] 命令 …");
    let mut text = format!("{}\n\n{}\n", tagline().get(language), usage.get(language));
    for question in Question::ALL {
        let mut entries = commands::entries()
            .filter(|entry| entry.question == question)
            .peekable();
        if entries.peek().is_none() {
            continue;
        }
        let _ = writeln!(text, "\n{}", question.title().get(language));
        for entry in entries {
            let _ = writeln!(text, "  {:<12} {}", entry.name, entry.about.get(language));
        }
    }
    let options = message!(
        en: "Options of every command\n  --lang LANG      en or zh-CN (default: from the environment)\n  -v, \
        --verbose    print more; repeat for details\n  --log-file FILE  write a log to a file\n  -h, \
        --help       print help, with examples for a command\n  -V, --version    print the version",
        zh: "所有命令的选项\n  --lang LANG      en 或 zh-CN；默认取环境语言\n  -v, --verbose    输出更多；两次则更详细\n  --log-file FILE  把过程写入文件\n  -h, --help       flatout 的帮助，或某个命令的帮助与示例\n  -V, --version    版本"
    );
    let _ = writeln!(text, "\n{}", options.get(language));
    let color = message!(
        en: "  --color WHEN     auto, always or never",
        zh: "  --color WHEN     auto、always 或 never：何时使用颜色"
    );
    let _ = writeln!(text, "{}", color.get(language));
    text
}
