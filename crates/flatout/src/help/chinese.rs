//! What the commands' help says in Chinese, by the English text.

/// English and Chinese, sorted by the English.
pub static CHINESE: &[(&str, &str)] = &[
    (
        "Also log findings, account and telemetry to these trackers at the end, separated by commas",
        "结束时还把诊断结论、时间账目和遥测写入这些跟踪器，用逗号分隔",
    ),
    ("In a notebook:", "在 notebook 中："),
    ("first line of a cell that trains", "训练单元格的第一行"),
    ("The kernel's process", "内核进程"),
    (
        "Record one cell of a notebook; %%flatout starts this by itself",
        "记录 notebook 的一个单元格；由 %%flatout 自动启动",
    ),
    (
        "Folders of runs, or projects with .flatout/runs [default: $FLATOUT_HOME/runs, else ./.flatout/runs]",
        "运行记录的目录，或含 .flatout/runs 的项目目录 [默认：$FLATOUT_HOME/runs，否则 ./.flatout/runs]",
    ),
    (
        "Where to listen; a port alone means this machine only",
        "监听地址；只给端口表示仅限本机",
    ),
    (
        "Ask for this token, or for a new one; other addresses than this machine's always do",
        "要求此令牌，或新生成一个；监听本机以外的地址时总会要求",
    ),
    (
        "Show all runs in the browser, live, and compare them",
        "在浏览器中实时查看所有运行并进行对比",
    ),
    (
        "the runs of this project, at http://127.0.0.1:8600/",
        "本项目的运行，地址为 http://127.0.0.1:8600/",
    ),
    ("the runs in these folders", "这些目录中的运行"),
    ("another port of this machine", "本机的另一个端口"),
    ("ask for a token on this machine, too", "在本机也要求令牌"),
    ("for other machines, with a token", "供其他机器访问，需令牌"),
    (
        "A Slurm job: 52098, or 52098_3 for one task of an array",
        "Slurm 作业：52098，或数组中的一个任务 52098_3",
    ),
    (
        "A checkpoint, or an output folder (its best checkpoint)",
        "检查点，或输出目录（取其中最佳检查点）",
    ),
    (
        "A configuration file, a run's folder or name, or `last`: print only the differences",
        "配置文件、运行的目录或名字，或 `last`：只输出不同之处",
    ),
    (
        "A configuration file, or a run's folder, name or `last`",
        "配置文件，或运行的目录、名字或 `last`",
    ),
    ("A file, a folder or a quoted glob", "文件、目录或加引号的通配符"),
    (
        "A panel of stocks, one Parquet file each, with a planted signal in the next day's return",
        "股票面板，每只股票一个 Parquet 文件，次日收益中埋有信号",
    ),
    (
        "A program that does no step for this time hangs: 90s, 5m",
        "多长时间没有一步即视为卡住：90s、5m",
    ),
    (
        "A record's folder, a run's name or id, or `last`",
        "记录目录、运行的名字或 id，或 `last`",
    ),
    (
        "A slow training, why it is slow, the fixes and the proof, in a minute",
        "一分钟演示：慢的训练、慢的原因、修复和证明",
    ),
    (
        "A value of that file to tune, by its path [default: all whose names are known]",
        "该文件中要调的值，按路径给出 [默认：所有认得名字的值]",
    ),
    ("Account", "账户"),
    (
        "Also draw the charts and the epochs into a PNG image",
        "同时把图表和各 epoch 的时间画成 PNG 图片",
    ),
    (
        "Also write it all as a page, with the charts of the first run or GPU log",
        "同时把全部内容写成页面，并画出第一个运行或 GPU 日志的图表",
    ),
    (
        "Also write the samples to this file, as CSV",
        "同时把采样以 CSV 写入该文件",
    ),
    (
        "Also check that the run is not slower than this one, beyond noise",
        "同时检查该运行是否比此运行慢（超出噪声）",
    ),
    (
        "Exit with 1 unless every run gained this much throughput over the first, beyond noise: faster=25%",
        "除非每次运行的吞吐都比第一个高出该值（且超出噪声），否则以 1 退出：faster=25%",
    ),
    ("As JSON", "以 JSON 输出"),
    ("At most this many trials", "最多试验次数"),
    (
        "Before and after: what changed, and whether it is more than noise",
        "改动前后：变了什么，是否超出噪声",
    ),
    (
        "CPUs for each GPU [default: a GPU's share of the partition's nodes, at most 16]",
        "每个 GPU 的 CPU 数 [默认：分区节点中一个 GPU 应得的份额，至多 16]",
    ),
    (
        "CSV rows; the verdict goes to stderr",
        "CSV 行；结论输出到 stderr",
    ),
    (
        "Column that names the entity (stock) of a row, for one table of many [default: as in training]",
        "一张表含多个实体（股票）时，标明每行所属实体的列 [默认：与训练时相同]",
    ),
    (
        "Data as the model was trained on; labels are not needed",
        "与训练时同样的数据；不需要标签",
    ),
    (
        "Data as the model was trained on, with labels",
        "与训练时同样的数据，带有标签",
    ),
    (
        "Delete old records; without --yes only list them",
        "删除旧记录；不加 --yes 只列出会删哪些",
    ),
    (
        "Disable Python stack sampling (20 Hz, out of process)",
        "不读取 Python 代码当前所在位置（每秒 20 次，从进程外读取）",
    ),
    ("Stop after this many seconds", "多少秒后结束"),
    ("Equal seeds give equal bytes", "种子相同则字节完全相同"),
    (
        "Exit with 1 when a run lost more throughput than this against the first, beyond noise: slower=3%",
        "某次运行的吞吐比第一个低得超过该值（且超出噪声）时以 1 退出：slower=3%",
    ),
    (
        "Exit with 1 when the verdict has one of these faults",
        "结论中有这些问题之一时以 1 退出",
    ),
    (
        "Exits 1 when something is broken or wrongly set, 0 otherwise.",
        "有损坏或设置错误时以 1 退出，否则以 0 退出。",
    ),
    (
        "Explain a rule: what it detects, why that is slow, what to do",
        "解释一条规则：检测什么、为何慢、怎么办",
    ),
    ("Fail when there is no GPU", "没有 GPU 时报错"),
    (
        "File to write, whole or not at all: .parquet, or anything else for CSV [default: CSV on stdout]",
        "要写的文件，要么完整写出要么不写：.parquet，其他后缀为 CSV [默认：CSV 输出到 stdout]",
    ),
    (
        "Files and folders that make up the project",
        "组成项目的文件和目录",
    ),
    (
        "Files or a folder whose reading is measured; they are only read",
        "要测量读取速度的文件或目录；只读不写",
    ),
    (
        "Find what will keep the GPU idle, from the source, before a run",
        "运行之前从源码找出会让 GPU 空闲的写法",
    ),
    (
        "Folder for data, runs and pages: new, empty, or of an earlier demo",
        "存放数据、运行和页面的目录：新建、空目录或以前演示用过的",
    ),
    ("Folder of the logs [default: here]", "日志目录 [默认：当前目录]"),
    (
        "Folder of the run record [default: a new one in $FLATOUT_HOME/runs, else ./.flatout/runs]",
        "运行记录的目录 [默认：$FLATOUT_HOME/runs 或 ./.flatout/runs 下的新目录]",
    ),
    ("Folder to write to: new or empty", "写入的目录：新建或空目录"),
    (
        "For a machine with this many usable CPUs",
        "为可用 CPU 数为该值的机器",
    ),
    (
        "For a machine with this GPU instead of the one here",
        "为装有该 GPU 的机器，而不是本机",
    ),
    (
        "Further options of sbatch, as in constraint=a100",
        "sbatch 的其他选项，如 constraint=a100",
    ),
    ("GPUs on each node", "每个节点的 GPU 数"),
    (
        "Go on with the last search of this command",
        "继续该命令上一次的搜索",
    ),
    (
        "Gray 128×128 images of eight shapes, one folder per class",
        "128×128 灰度图，八种形状，每类一个目录",
    ),
    (
        "Show job status: queue state, record so far, end of the log",
        "作业状态：队列状态、目前的记录、日志末尾",
    ),
    (
        "How long to watch; Ctrl-C ends it sooner",
        "观察多久；Ctrl-C 可提前结束",
    ),
    ("How to print the findings", "结果的输出格式"),
    ("How to print the values", "数值的输出格式"),
    (
        "Infinite values: their row cannot be read, or they count as missing values [default: error]",
        "无穷值：所在行视为无法读取，或当作缺失值 [默认：error]",
    ),
    (
        "Join a recorded run: what it proved comes first with its cost, what it disproved is left out",
        "结合一次运行记录：被证实的排在前面并给出代价，被推翻的略去",
    ),
    ("Keeps GPUs busy while models train", "让 GPU 在训练时满负荷"),
    (
        "Killed or interrupted: the same command again goes on where it stopped.",
        "被终止或中断后，再次运行同一命令即可从停下的地方继续。",
    ),
    (
        "Language of everything shown: en or zh-CN [default: the environment's]",
        "显示语言：en 或 zh-CN [默认：环境语言]",
    ),
    (
        "Lay the page out for printing: light, nothing folded, no buttons",
        "按打印排版：浅色、全部展开、没有按钮",
    ),
    ("Keep this many of the newest", "保留最新的多少个"),
    ("Leave the GPUs alone", "不动 GPU"),
    (
        "Let the program go on when flatout is killed (by default it is ended)",
        "flatout 被杀死时让程序继续运行（默认一并结束）",
    ),
    (
        "Limits are in the [check] section of the nearest flatout.toml. Exits 1 when an item fails.",
        "阈值写在最近的 flatout.toml 的 [check] 一节中。有任一项不通过时以 1 退出。",
    ),
    ("Limits from this file", "从该文件读取限值"),
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
        "Inspect a running program: its processes, the GPU, where its Python code is",
        "观察已在运行的程序：进程、GPU、Python 代码所在位置",
    ),
    (
        "Look at driver, GPUs, libraries, Python and limits",
        "检查驱动、GPU、库、Python 和各种限制",
    ),
    (
        "Only read the first N files (or images per class)",
        "只看前多少个文件（或每类前多少张图）",
    ),
    (
        "Make data to try things on, with a known best score",
        "生成试验数据，并给出已知的最佳得分",
    ),
    (
        "Apply the fixes that leave results unchanged; the old files are kept next to the new ones",
        "做不影响结果的修改；旧文件保留在旁边",
    ),
    (
        "Make the program faster while it runs: change settings that leave its results alone, measure each, keep what helps",
        "在程序运行期间让它更快：更改不影响结果的设置，逐项测量，保留有效的",
    ),
    (
        "Measure each trial for at least this many seconds, three times that where it varies",
        "每次试验至少测量多少秒；波动大时最多延长到三倍",
    ),
    ("Measure what this machine can do at most", "测量这台机器的上限"),
    (
        "Memory of another GPU in GiB, to check whether the data fits [default: this machine's]",
        "另一块 GPU 的显存（GiB），用于判断数据是否放得下 [默认：本机的]",
    ),
    (
        "Memory of each node, as in 32G [default: the GPUs' share of the partition's nodes]",
        "每个节点的内存，如 32G [默认：分区节点中这些 GPU 应得的份额]",
    ),
    (
        "Name of the job and of its run [default: the script's]",
        "作业及其运行的名字 [默认：脚本名]",
    ),
    ("Name of the run", "运行的名字"),
    (
        "Name of the run [default: the script's]",
        "运行的名字 [默认：脚本名]",
    ),
    (
        "No further trial begins after this time: 90s, 10m, 1h",
        "超过该时间不再开始新的试验：90s、10m、1h",
    ),
    ("Nodes", "节点数"),
    (
        "Not these rules or domains, separated by commas",
        "不用这些规则或领域，逗号分隔",
    ),
    (
        "Nothing of yours is changed without --write. Checkpoints of trials are removed, those of earlier runs stay.",
        "不加 --write 不会改动你的任何文件。试验中保存的检查点会被删除，以前的检查点保持不变。",
    ),
    ("Number of interactions", "交互条数"),
    ("Number of images", "图片数量"),
    ("Number of stocks", "股票数量"),
    (
        "File to write: an ONNX model, or a Python module for PyTorch if it ends in .py",
        "要写入的文件：ONNX 模型；以 .py 结尾时为 PyTorch 模块",
    ),
    (
        "One JSON object a line on stdout",
        "在 stdout 上每行一个 JSON 对象",
    ),
    (
        "One JSON object a line, the verdict last",
        "每行一个 JSON 对象，最后一行是结论",
    ),
    (
        "One page about a run, to keep or to share",
        "一页说清一次运行的情况，可保存可发送",
    ),
    (
        "Only the first N entities, files or images",
        "只用前多少个实体、文件或图片",
    ),
    (
        "Only these GPUs: indices or UUIDs [default: what the environment leaves visible]. AMD GPUs and Ascend NPUs are read too, which has not been run on hardware",
        "只看这些 GPU：序号或 UUID [默认：环境变量允许的 GPU]。也能读取 AMD GPU 与昇腾 NPU，但尚未在真实硬件上运行过",
    ),
    (
        "Only these knobs, with a range where wanted: num_workers,batch_size=32..4096,amp",
        "只调这些参数，可给范围：num_workers,batch_size=32..4096,amp",
    ),
    (
        "Only these rules or domains, separated by commas",
        "只用这些规则或领域，逗号分隔",
    ),
    ("Only those not used for this many days", "只删除多少天未使用的"),
    ("Partition", "分区"),
    ("Plain lines also on a terminal", "在终端上也逐行输出"),
    (
        "Play a run's record back, with the same verdict",
        "回放一次运行的记录，给出同样的结论",
    ),
    ("Print JSON", "输出 JSON"),
    (
        "Print JSON; a page is then written only with --html",
        "输出 JSON；此时只有加 --html 才写页面",
    ),
    ("Print Markdown", "输出 Markdown"),
    (
        "Print Markdown; a page is then written only with --html",
        "输出 Markdown；此时只有加 --html 才写页面",
    ),
    (
        "Print a batch script: GPUs, CPUs per GPU, memory, time, the log's name, the command inside `flatout run`",
        "输出批处理脚本：GPU、每 GPU 的 CPU、内存、时间、日志名，命令放在 `flatout run` 中",
    ),
    ("Print as JSON", "以 JSON 输出"),
    ("Print the completion script of a shell", "输出 shell 的补全脚本"),
    ("Print the findings as JSON", "以 JSON 输出诊断结果"),
    ("Print the list as JSON", "以 JSON 输出列表"),
    (
        "Print the recipe and the best score as JSON",
        "以 JSON 输出配方和最佳得分",
    ),
    ("Print what was seen as JSON", "以 JSON 输出看到的情况"),
    ("Quality of service", "服务质量（QOS）"),
    (
        "Read a column as real, integer, category or time, or ignore it; may be repeated [default: inferred from all files]",
        "指定某列的类型：real、integer、category、time，或 ignore（忽略）；可重复 [默认：由全部文件推断]",
    ),
    (
        "Encoding of text files, such as gbk, gb18030, big5 or latin1 [default: utf-8]",
        "文本文件的编码，例如 gbk、gb18030、big5 或 latin1 [默认：utf-8]",
    ),
    (
        "Also log metrics, findings and telemetry to these trackers at the end, separated by commas",
        "结束时还把指标、诊断结果与遥测写入这些跟踪器，用逗号分隔",
    ),
    ("Really delete", "真正删除"),
    ("Records older than this many days", "开始于多少天以前的记录"),
    (
        "Remove prepared data sets; they are made again when needed",
        "删除准备好的数据集；需要时会重新生成",
    ),
    (
        "Report where every rank is after this long without progress: 90s, 5m, 1h or off",
        "这么久没有进展时，报告每个 rank 在哪里：90s、5m、1h 或 off",
    ),
    (
        "Rows that cannot be read: an error in training, or left out [default: error]",
        "无法读取的行：训练时报错，或跳过 [默认：error]",
    ),
    (
        "Run a few steps under PyTorch's profiler: kernels, gaps between them and their cause, tensor cores, copies",
        "用 PyTorch profiler 跑几步：kernel、其间的空隙及原因、tensor core、拷贝",
    ),
    (
        "Run a trained model on other data",
        "用训练好的模型对其他数据做预测",
    ),
    (
        "Run a training program unchanged and report why its GPU is idle",
        "原样运行训练程序，并说明 GPU 为何空闲",
    ),
    (
        "Run every combination as a task of an array: an option of the command with its values",
        "把每种组合作为数组的一个任务运行：命令的一个选项及其取值",
    ),
    (
        "Run the checklist before a training, or on its record",
        "训练前执行检查清单，或对其记录执行",
    ),
    (
        "Runs (`last`, a name, an id, a folder) and logs: nvidia-smi, dmon, gpustat, flatout's CSV, or what a program printed",
        "运行（`last`、名字、id、目录）和日志：nvidia-smi、dmon、gpustat、flatout 的 CSV，或程序打印的内容",
    ),
    ("Samples in the data set", "数据集的样本数"),
    (
        "Print progress and the current bottleneck every few seconds",
        "每隔几秒说明运行情况和拖慢它的原因",
    ),
    ("Follow the job until it finishes", "持续报告直到结束"),
    (
        "Print more about what is done; twice for details",
        "输出更多过程信息；给两次则更详细",
    ),
    (
        "Print nothing, neither during the run nor at its end",
        "运行期间和结束时都不输出",
    ),
    (
        "Show why the GPU was idle in a run, and what to do",
        "说明一次运行中 GPU 为何空闲，以及该怎么做",
    ),
    (
        "Scale the learning rate with the batch, in the trials and in the result",
        "学习率随 batch 缩放，试验和结果都如此",
    ),
    (
        "Seconds between rows, for logs without a time",
        "没有时间列的日志，各行之间的秒数",
    ),
    ("Seconds between samples, from 0.05", "采样间隔（秒），最小 0.05"),
    (
        "Score a trained model on other data",
        "在其他数据上评估训练好的模型",
    ),
    ("Send that script with sbatch", "用 sbatch 提交该脚本"),
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
        "Settings to begin with, under the names of `flatout run --apply`",
        "起始设置，名字与 `flatout run --apply` 相同",
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
        "Start one process per GPU with srun, each with its own record, instead of one for all",
        "用 srun 为每个 GPU 启动一个进程，各有自己的记录，而不是共用一个",
    ),
    (
        "Statistics, times, errors and charts of a job, a run or any log",
        "作业、运行或任意日志的统计、时间、错误和图表",
    ),
    (
        "Stop the program after this many optimizer steps",
        "多少个优化器步之后停止程序",
    ),
    ("Tasks of the array at once", "数组中同时运行的任务数"),
    (
        "Show what flatout sees in data files",
        "说明 flatout 在数据文件中看到什么",
    ),
    (
        "Show what flatout sees: files, shards, schema, rows, missing values, splits, memory",
        "说明 flatout 看到什么：文件、分片、列、行数、缺失值、划分、内存",
    ),
    (
        "Export a run for a trace viewer (Perfetto, Chrome)",
        "把一次运行导出到 trace 查看器（Perfetto、Chrome）",
    ),
    (
        "What to do with a program that makes no progress",
        "程序没有进展时怎么做",
    ),
    ("Where to write it; - for stdout", "写到哪里；- 表示标准输出"),
    (
        "Write a run as trace-event JSON, which Perfetto and Chrome open",
        "把一次运行写成 trace-event JSON，Perfetto 和 Chrome 可以打开",
    ),
    (
        "every rule, with where it is found: source, run",
        "全部规则，以及在哪里发现：源码、运行",
    ),
    ("the same for programs", "同上，供程序读取"),
    (
        "Write a trained model for ONNX or PyTorch, with its preprocessing",
        "把训练好的模型连同预处理导出为 ONNX 或 PyTorch 模块",
    ),
    (
        "trace.json here, for https://ui.perfetto.dev",
        "在当前目录写入 trace.json，供 https://ui.perfetto.dev 打开",
    ),
    (
        "The cache's folder [default: $FLATOUT_CACHE, else ~/.cache/flatout/prepared]",
        "缓存目录 [默认：$FLATOUT_CACHE，否则 ~/.cache/flatout/prepared]",
    ),
    (
        "The columns of a GPU log without a header, as given to nvidia-smi --query-gpu=",
        "没有表头的 GPU 日志的列，与 nvidia-smi --query-gpu= 的写法相同",
    ),
    ("The command that is to be started", "将要启动的命令"),
    (
        "The data that will be read [default: what the configuration names]",
        "将要读取的数据 [默认：配置中写明的]",
    ),
    (
        "The first rank of a Slurm job: 52098, or 52098_3 for one task of an array",
        "Slurm 作业的第一个 rank：52098，数组作业的某个任务写作 52098_3",
    ),
    (
        "The id of a rule, as findings show it",
        "规则的 id，与结果中显示的一致",
    ),
    (
        "The job: 52098, or 52098_3 for one task of an array",
        "作业：52098，或数组中的一个任务 52098_3",
    ),
    (
        "The process: the training program's own, not its launcher's",
        "进程号：训练程序本身，而不是启动器",
    ),
    (
        "The program and its arguments, as you would type them",
        "程序及其参数，与平时输入的一样",
    ),
    (
        "The program's configuration file; a copy with changed values takes its place in the command",
        "程序的配置文件；命令中会换成改过值的副本",
    ),
    ("The result as JSON", "以 JSON 输出结果"),
    (
        "The result is kept as machine.json in $FLATOUT_HOME, or in .flatout.",
        "结果保存为 $FLATOUT_HOME（否则 .flatout）中的 machine.json。",
    ),
    (
        "The run: `last`, its name or id, or its folder",
        "运行：`last`、名字或 id，或其目录",
    ),
    (
        "The runs, the one to compare against first: names, ids, folders, or `last`",
        "要比较的运行，基准放在最前：名字、id、目录或 `last`",
    ),
    ("The same as --format json", "等同于 --format json"),
    ("The shell to complete for", "为哪种 shell 补全"),
    (
        "Time limit: minutes, hours:minutes:seconds, or days-hours",
        "时间上限：分钟、时:分:秒 或 天-时",
    ),
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
        "Train every combination of lists of settings",
        "训练设置列表的每一种组合",
    ),
    (
        "Trainings side by side at most, as many as is measured to be fastest; auto: up to one a CPU",
        "最多同时进行的训练数，实际数目由实测决定；auto：最多每个 CPU 一个",
    ),
    (
        "Try better settings on a program and keep what measurably helps",
        "在程序上试更好的设置，只保留实测有效的",
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
        "What an hour costs, for --objective cost",
        "每小时的费用，用于 --objective cost",
    ),
    (
        "What is to become better: samples/s, energy (samples a joule) or cost",
        "优化目标：samples/s、energy（每焦耳样本数）或 cost",
    ),
    (
        "What is trained: lstm, mlp, cnn, transformer, resnet50 …",
        "训练什么：lstm、mlp、cnn、transformer、resnet50 …",
    ),
    (
        "What missing values become: mean, zero, forward, or COLUMN=POLICY for one column; may be repeated [default: as in training]",
        "缺失值的处理方式：mean、zero、forward，或用 列名=方式 只针对一列；可重复 [默认：与训练时相同]",
    ),
    (
        "What missing values of numeric columns become: error, mean, zero, forward or drop, or COLUMN=POLICY for one column; may be repeated [default: error]",
        "数值列缺失值的处理方式：error、mean、zero、forward 或 drop，或用 列名=方式 只针对一列；可重复 [默认：error]",
    ),
    (
        "Where to write the page [default: report.html in the record's folder]; - for stdout",
        "页面写到哪里 [默认：记录目录中的 report.html]；- 表示 stdout",
    ),
    (
        "With --auto: also changes that alter numbers, guarded by the loss: precision, batch, compile, padding",
        "配合 --auto：也允许会改变数值的更改，并检查 loss：precision、batch、compile、padding",
    ),
    (
        "With --auto: leave these settings as they are",
        "配合 --auto：这些设置保持不变",
    ),
    (
        "With --fix or --diff: also edits that may change results (precision, memory, the order of sums)",
        "与 --fix 或 --diff 合用：也做可能影响结果的修改（精度、内存、求和顺序）",
    ),
    ("Write a page", "写成页面"),
    ("Write no run record", "不写运行记录"),
    (
        "Write the findings as JSON to this file",
        "把诊断结果以 JSON 写入该文件",
    ),
    (
        "Write the result into the configuration file and the source; old files are kept as *.flatout-backup",
        "把结果写入配置文件和源码；旧文件保存为 *.flatout-backup",
    ),
    (
        "Write what -v would print, and more, to this file",
        "把 -v 的内容（更详细）写入该文件",
    ),
    (
        "Write, send and follow Slurm jobs that record themselves",
        "编写、提交和跟踪会自我记录的 Slurm 作业",
    ),
    (
        "YAML file with settings; flags win over it",
        "含设置的 YAML 文件；命令行参数优先",
    ),
    (
        "YAML file; settings that are lists are combined",
        "YAML 文件；写成列表的设置会被组合",
    ),
    (
        "a Slurm job: records, logs with its number, what sacct knows",
        "一个 Slurm 作业：记录、带作业号的日志、sacct 的数据",
    ),
    ("a batch script that records itself", "会自我记录的批处理脚本"),
    (
        "after it: utilization, temperature, memory, epochs",
        "之后：利用率、温度、内存、epoch",
    ),
    (
        "all of it as lines, then the verdict",
        "全部逐行输出，然后给出结论",
    ),
    ("all records, oldest first", "全部记录，最旧的在前"),
    (
        "and how fast these files can be read, cold and warm",
        "以及这些文件冷读和热读的速度",
    ),
    ("any PyTorch program, unchanged", "任意 PyTorch 程序，不改代码"),
    (
        "any program that reports its steps, through placeholders",
        "任意会报告步数的程序，用占位符",
    ),
    (
        "before the start: settings, data, GPU, disk",
        "启动前：设置、数据、GPU、磁盘",
    ),
    ("delete it", "真正删除"),
    ("exit 1 when it became slower", "变慢时以 1 退出"),
    ("exit 1 unless it became faster", "没有变快则以 1 退出"),
    (
        "and whether it is slower than an earlier run",
        "以及是否比以前的运行慢",
    ),
    (
        "five minutes as lines, then the verdict",
        "逐行输出五分钟，然后给出结论",
    ),
    ("for a program", "供程序读取"),
    ("for a pull request", "用于 pull request"),
    ("for an issue or a pull request", "用于 issue 或 pull request"),
    ("for another machine", "为另一台机器"),
    ("go on after Ctrl-C", "Ctrl-C 之后继续"),
    (
        "fix what can be fixed; old files are kept as *.flatout-backup",
        "修复可以修复的；旧文件保存为 *.flatout-backup",
    ),
    (
        "one of a Slurm job's ranks, with all of them side by side",
        "Slurm 作业的一个 rank，并列出所有 rank",
    ),
    (
        "one process and one record per GPU",
        "每个 GPU 一个进程、一份记录",
    ),
    ("only those not used for 30 days", "只删除 30 天内没有用过的"),
    (
        "only what differs from a configuration file",
        "只列出与配置文件不同之处",
    ),
    (
        "only what differs from a recorded run",
        "只列出与一次运行记录不同之处",
    ),
    (
        "put what helped into the source as well",
        "把有效的设置也写入源码",
    ),
    ("refuse to start what fails", "不合格就不启动"),
    ("remove all prepared data sets", "删除全部准备好的数据集"),
    (
        "report.html next to the record, the headline here",
        "在记录旁写 report.html，并在此显示要点",
    ),
    ("show what --fix would change", "显示 --fix 会改什么"),
    ("the folder you are in", "当前目录"),
    ("the newest run", "最新的一次运行"),
    ("the newest run, ten times as fast", "最新的一次运行，十倍速"),
    ("the same as a DataLoader call", "同上，写成 DataLoader 调用"),
    ("the same for a program", "同上，供程序读取"),
    (
        "the same from a command's flags, its --config and its source",
        "同上，依据命令的参数、其 --config 和源码",
    ),
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
        "what this machine can do at most, in under a minute",
        "一分钟内测出这台机器的上限",
    ),
    (
        "what this machine has, what is missing, and what that costs",
        "这台机器有什么、缺什么、代价是什么",
    ),
    ("what would be deleted", "看会删除哪些"),
    ("when it has ended", "结束之后"),
    (
        "where to begin on this machine, each value with its reason",
        "在这台机器上从哪里开始，每个值附理由",
    ),
    ("with what a recorded run measured", "结合一次运行记录的实测数据"),
    ("When to use color", "何时使用颜色"),
    (
        "Use flatout's own trainer even if PyTorch is installed",
        "即使装有 PyTorch 也使用 flatout 自己的训练引擎",
    ),
    ("logs that other tools wrote", "其他工具写的日志"),
    (
        "The command, for example `run` or `slurm submit` [default: flatout itself]",
        "命令，例如 `run` 或 `slurm submit` [默认：flatout 自身]",
    ),
    (
        "Write the pages of all commands to this folder",
        "把所有命令的手册页写入该目录",
    ),
    ("read the page of a command", "阅读某个命令的手册页"),
    ("write one page per command", "每个命令写一页"),
    (
        "Print a manual page, or write all of them",
        "输出手册页，或写出全部手册页",
    ),
    ("Number of GPUs", "…… 以及这样的 GPU 的个数"),
    (
        "Serve flatout's commands to coding agents (Model Context Protocol over stdio)",
        "通过 stdio 向编程 agent 提供 flatout 的命令（Model Context Protocol）",
    ),
    (
        "The only folder whose files calls may name [default: this one]",
        "调用只能涉及该目录内的文件 [默认：当前目录]",
    ),
    (
        "Offer nothing that runs a program or writes a file",
        "不提供会运行程序或写入文件的工具",
    ),
    (
        "an agent starts this; people rarely do",
        "由 agent 启动，很少手动运行",
    ),
    ("register it with Claude Code", "注册到 Claude Code"),
    ("diagnosis, lint and comparison only", "只提供诊断、检查和对比"),
    (
        "the last run with a saved baseline",
        "把最近一次运行与保存的基线对比",
    ),
    (
        "Compare with this saved baseline; RUN is then `last` where none is named",
        "与该基线对比；未指定 RUN 时为 `last`",
    ),
    (
        "Print GitHub annotations as well: limits that are broken, new findings at their lines",
        "同时输出 GitHub 注解：未通过的条件，以及新问题所在的行",
    ),
    (
        "Keep a run under a name, to compare later runs with",
        "用名字保存一次运行，供之后的运行对比",
    ),
    ("keep the last run as `main`", "把最近一次运行保存为 `main`"),
    ("what was saved", "已保存的基线"),
    (
        "the gate: exit 1 when the last run is slower",
        "把关：最近一次运行变慢则退出码为 1",
    ),
    (
        "Save a run as a baseline: a copy of its record",
        "把一次运行保存为基线：复制其记录",
    ),
    ("List the baselines", "列出基线"),
    ("Delete a baseline; the runs stay", "删除基线；运行记录保留"),
    ("Name of the baseline", "基线的名字"),
    (
        "Put the run in the place of a baseline of this name",
        "替换同名的基线",
    ),
    (
        "Put the probe into the program for that time (Python 3.14 or later): steps, waits for batches, findings",
        "在观察期间把探针放入程序（Python 3.14 及以上）：步、等待 batch 的时间、诊断结果",
    ),
    (
        "steps and waits as well, on Python 3.14",
        "同时看到步和等待，需 Python 3.14",
    ),
];
