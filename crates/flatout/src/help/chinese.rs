//! What the commands' help says in Chinese, by the English text.

/// English and Chinese, sorted by the English.
pub static CHINESE: &[(&str, &str)] = &[
    (
        "A configuration file, a run's folder or name, or `last`: print only the differences",
        "配置文件、运行的目录或名字，或 `last`：只输出不同之处",
    ),
    ("A file, a folder or a quoted glob", "文件、目录或加引号的通配符"),
    (
        "A panel of stocks, one Parquet file each, with a planted signal in the next day's return",
        "股票面板，每只股票一个 Parquet 文件，次日收益中埋有信号",
    ),
    (
        "A record's folder, a run's name or id, or `last`",
        "记录目录、运行的名字或 id，或 `last`",
    ),
    (
        "Also write the samples to this file, as CSV",
        "同时把采样以 CSV 写入该文件",
    ),
    ("As JSON", "以 JSON 输出"),
    (
        "CSV rows; the verdict goes to stderr",
        "CSV 行；结论输出到 stderr",
    ),
    (
        "Delete old records; without --yes only says which",
        "删除旧记录；不加 --yes 只列出会删哪些",
    ),
    (
        "Do not read where the program's Python code stands (20 times a second, from outside)",
        "不读取 Python 代码当前所在位置（每秒 20 次，从进程外读取）",
    ),
    ("End after so many seconds", "多少秒后结束"),
    ("Equal seeds give equal bytes", "种子相同则字节完全相同"),
    (
        "Exit with 1 when the verdict has one of these faults",
        "结论中有这些问题之一时以 1 退出",
    ),
    (
        "Explain a rule: what it detects, why that is slow, what to do",
        "解释一条规则：检测什么、为何慢、怎么办",
    ),
    ("Fail when there is no GPU", "没有 GPU 时报错"),
    (
        "Files and folders that make up the project",
        "组成项目的文件和目录",
    ),
    (
        "Find what will keep the GPU idle, from the source, before a run",
        "运行之前从源码找出会让 GPU 空闲的写法",
    ),
    (
        "Folder of the run record [default: a new one in $FLATOUT_HOME/runs, else ./.flatout/runs]",
        "运行记录的目录 [默认：$FLATOUT_HOME/runs 或 ./.flatout/runs 下的新目录]",
    ),
    ("Folder to write to: new or empty", "写入的目录：新建或空目录"),
    (
        "For a machine with so many usable CPUs",
        "为可用 CPU 数为该值的机器",
    ),
    (
        "For a machine with this GPU instead of the one here",
        "为装有该 GPU 的机器，而不是本机",
    ),
    (
        "Grey 128×128 pictures of eight shapes, one folder a class",
        "128×128 灰度图，八种形状，每类一个目录",
    ),
    ("How to print the findings", "结果的输出格式"),
    ("How to print the values", "数值的输出格式"),
    (
        "Join a recorded run: what it proved comes first with its cost, what it disproved is left out",
        "结合一次运行记录：被证实的排在前面并给出代价，被推翻的略去",
    ),
    ("Keeps GPUs busy while models train", "让 GPU 在训练时满负荷"),
    (
        "Language of everything shown: en or zh-CN [default: the environment's]",
        "显示语言：en 或 zh-CN [默认：环境语言]",
    ),
    (
        "Lay the page out for printing: light, nothing folded, no buttons",
        "按打印排版：浅色、全部展开、没有按钮",
    ),
    ("Leave so many of the newest", "保留最新的多少个"),
    (
        "Lines instead of a moving line, also on a terminal",
        "逐行输出而不是刷新同一行，在终端上也如此",
    ),
    ("List every rule", "列出全部规则"),
    ("List or remove prepared data sets", "列出或删除准备好的数据集"),
    (
        "List the run records, or delete old ones",
        "列出运行记录，或删除旧记录",
    ),
    (
        "Logs of a short-video service in three CSV parts, with user and video tables to join",
        "短视频服务的日志，分三个 CSV，附可连接的用户表和视频表",
    ),
    (
        "Look at driver, GPUs, libraries, Python and limits",
        "检查驱动、GPU、库、Python 和各种限制",
    ),
    (
        "Look at the first so many files (or pictures of a class) only",
        "只看前多少个文件（或每类前多少张图）",
    ),
    (
        "Make data to try things on, with a known best score",
        "生成试验数据，并给出已知的最佳得分",
    ),
    (
        "Make the edits that leave results as they are; the old files are kept beside the new ones",
        "做不影响结果的修改；旧文件保留在旁边",
    ),
    (
        "Memory of the GPU in GiB, to tell whether the data fit",
        "GPU 显存（GiB），用于判断数据是否放得下",
    ),
    ("Name of the run", "运行的名字"),
    (
        "Name of the run [default: the script's]",
        "运行的名字 [默认：脚本名]",
    ),
    (
        "Not these rules or domains, separated by commas",
        "不用这些规则或领域，逗号分隔",
    ),
    ("Number of interactions", "交互条数"),
    ("Number of pictures", "图片数量"),
    ("Number of stocks", "股票数量"),
    (
        "One JSON object a line on stdout",
        "在 stdout 上每行一个 JSON 对象",
    ),
    (
        "One JSON object a line, the verdict last",
        "每行一个 JSON 对象，最后一行是结论",
    ),
    (
        "One page that says how a run went, to keep or to send",
        "一页说清一次运行的情况，可保存可发送",
    ),
    (
        "Only these GPUs: indices or UUIDs [default: what the environment leaves visible]",
        "只看这些 GPU：序号或 UUID [默认：环境变量允许的 GPU]",
    ),
    (
        "Only these rules or domains, separated by commas",
        "只用这些规则或领域，逗号分隔",
    ),
    ("Only those not used for so many days", "只删除多少天未使用的"),
    ("Plain lines also on a terminal", "在终端上也逐行输出"),
    (
        "Play a run's record back, with the same verdict",
        "回放一次运行的记录，给出同样的结论",
    ),
    (
        "Print Markdown; a page is then written only with --html",
        "输出 Markdown；此时只有加 --html 才写页面",
    ),
    ("Print as JSON", "以 JSON 输出"),
    ("Print the completion script of a shell", "输出 shell 的补全脚本"),
    ("Print the findings as JSON", "以 JSON 输出诊断结果"),
    (
        "Print the recipe and the best score as JSON",
        "以 JSON 输出配方和最佳得分",
    ),
    ("Really delete", "真正删除"),
    (
        "Records that began more than so many days ago",
        "开始于多少天以前的记录",
    ),
    (
        "Remove prepared data sets; they are made again when needed",
        "删除准备好的数据集；需要时会重新生成",
    ),
    (
        "Run a training program unchanged and say why its GPU idled",
        "原样运行训练程序，并说明 GPU 为何空闲",
    ),
    ("Samples in the data set", "数据集的样本数"),
    (
        "Say more about what is done; twice for details",
        "输出更多过程信息；给两次则更详细",
    ),
    (
        "Say nothing, neither during the run nor at its end",
        "运行期间和结束时都不输出",
    ),
    (
        "Say why the GPU idled in a run, and what to do",
        "说明一次运行中 GPU 为何空闲，以及该怎么做",
    ),
    ("Seconds between samples, from 0.05", "采样间隔（秒），最小 0.05"),
    (
        "Serve the newest sample as a page for Prometheus; a port alone listens on loopback",
        "把最新采样作为 Prometheus 页面提供；只给端口时仅监听本机",
    ),
    (
        "Settings from this file instead of the nearest flatout.toml or pyproject.toml",
        "从该文件读取设置，而不是最近的 flatout.toml 或 pyproject.toml",
    ),
    (
        "Settings to begin with on this machine, each with its reason",
        "适合这台机器的初始设置，每项附理由",
    ),
    (
        "Settings to put in force without an edit: loader.num_workers=8,amp=bf16,tf32=on,optimizer.fused=on",
        "不改代码就生效的设置：loader.num_workers=8,amp=bf16,tf32=on,optimizer.fused=on",
    ),
    (
        "Share of the variance of returns that can be predicted",
        "收益方差中可预测的比例",
    ),
    (
        "Show nothing and write no record, only serve the page: for a daemon",
        "不显示、不写记录，只提供页面：用于守护进程",
    ),
    ("Show the prepared data sets", "显示准备好的数据集"),
    (
        "Show what --fix would change, and change nothing",
        "只显示 --fix 会改什么，不做修改",
    ),
    (
        "Slider captchas with the positions of gap and slider in labels.csv",
        "滑块验证码，缺口和滑块的位置在 labels.csv 中",
    ),
    (
        "Stop the program after this many optimizer steps",
        "多少个优化器步之后停止程序",
    ),
    (
        "Tell what flatout sees in data files",
        "说明 flatout 在数据文件中看到什么",
    ),
    (
        "Tell what flatout sees: files, shards, schema, rows, missing values, splits, memory",
        "说明 flatout 看到什么：文件、分片、列、行数、缺失值、划分、内存",
    ),
    (
        "The cache's folder [default: $FLATOUT_CACHE, else ~/.cache/flatout/prepared]",
        "缓存目录 [默认：$FLATOUT_CACHE，否则 ~/.cache/flatout/prepared]",
    ),
    (
        "The id of a rule, as findings show it",
        "规则的 id，与结果中显示的一致",
    ),
    (
        "The program and its arguments, as you would type them",
        "程序及其参数，与平时输入的一样",
    ),
    (
        "The run: `last`, its name or id, or its folder",
        "运行：`last`、名字或 id，或其目录",
    ),
    ("The same as --format json", "等同于 --format json"),
    ("The shell to complete for", "为哪种 shell 补全"),
    (
        "Times the pace of the run; 0 waits for nothing [default: 10 on the screen, else 0]",
        "相对原速的倍数；0 表示不等待 [默认：界面上 10，否则 0]",
    ),
    ("Trading days", "交易日数"),
    (
        "Train a model at the speed of the hardware",
        "以硬件极限速度训练模型",
    ),
    (
        "Watch GPUs, host and processes; end with a verdict",
        "监控 GPU、主机和进程，最后给出结论",
    ),
    (
        "Watch this process and its children too; end when it ends",
        "同时监控该进程及其子进程；它结束时一并结束",
    ),
    (
        "What is trained: lstm, mlp, cnn, transformer, resnet50 …",
        "训练什么：lstm、mlp、cnn、transformer、resnet50 …",
    ),
    (
        "Where to write the page [default: report.html in the record's folder]; - for stdout",
        "页面写到哪里 [默认：记录目录中的 report.html]；- 表示 stdout",
    ),
    (
        "With --fix or --diff: also edits that may change results (precision, memory, the order of sums)",
        "与 --fix 或 --diff 合用：也做可能影响结果的修改（精度、内存、求和顺序）",
    ),
    ("Write no run record", "不写运行记录"),
    (
        "Write the findings as JSON to this file",
        "把诊断结果以 JSON 写入该文件",
    ),
    (
        "Write what -v would say, and more, to this file",
        "把 -v 的内容（更详细）写入该文件",
    ),
    (
        "YAML file with settings; flags win over it",
        "含设置的 YAML 文件；命令行参数优先",
    ),
    (
        "all of it as lines, then the verdict",
        "全部逐行输出，然后给出结论",
    ),
    ("all records, oldest first", "全部记录，最旧的在前"),
    ("delete it", "真正删除"),
    ("every rule", "全部规则"),
    (
        "five minutes as lines, then the verdict",
        "逐行输出五分钟，然后给出结论",
    ),
    ("for a program", "供程序读取"),
    ("for an issue or a pull request", "用于 issue 或 pull request"),
    ("for another machine", "为另一台机器"),
    (
        "mend what can be mended; old files are kept as *.flatout-backup",
        "修复可以修复的；旧文件保存为 *.flatout-backup",
    ),
    (
        "only what differs from a configuration file",
        "只列出与配置文件不同之处",
    ),
    (
        "only what differs from a recorded run",
        "只列出与一次运行记录不同之处",
    ),
    ("remove all prepared data sets", "删除全部准备好的数据集"),
    (
        "report.html beside the record, the headline here",
        "在记录旁写 report.html，并在此显示要点",
    ),
    ("show what --fix would change", "显示 --fix 会改什么"),
    ("the folder you are in", "当前目录"),
    ("the newest run, ten times as fast", "最新的一次运行，十倍速"),
    ("the same as a DataLoader call", "同上，写成 DataLoader 调用"),
    ("the same for a program", "同上，供程序读取"),
    (
        "the screen; q ends it with the verdict",
        "监控界面；按 q 结束并给出结论",
    ),
    (
        "these files and folders, as one project",
        "把这些文件和目录当作一个项目",
    ),
    ("until that process ends", "直到该进程结束"),
    (
        "what the rule detects, why it is slow, what to do",
        "这条规则检测什么、为何慢、怎么办",
    ),
    (
        "what this machine has, what is missing, and what that costs",
        "这台机器有什么、缺什么、代价是什么",
    ),
    ("what would be deleted", "看会删除哪些"),
    (
        "where to begin on this machine, each value with its reason",
        "在这台机器上从哪里开始，每个值附理由",
    ),
    ("with what a recorded run measured", "结合一次运行记录的实测数据"),
    ("… and so many of it", "…… 以及这样的 GPU 的个数"),
];
