//! The commands' help in Chinese, by the English text.

/// English and Chinese, sorted by the English.
pub static CHINESE: &[(&str, &str)] = &[
    (
        "Also log findings, account and telemetry to these trackers at the end, separated by commas",
        "结束时还把诊断结论、时间账目和遥测写入这些跟踪器，用逗号分隔",
    ),
    ("In a notebook:", "在 notebook 中："),
    ("first line of a cell that trains", "训练单元格的第一行"),
    ("and clicks_model.safetensors", "以及 clicks_model.safetensors"),
    ("Process id of the kernel", "内核的进程号"),
    (
        "Record one notebook cell; %%flatout starts this command",
        "记录 notebook 的一个单元格；由 %%flatout 自动启动",
    ),
    (
        "Folders of runs, or projects with .flatout/runs [default: $FLATOUT_HOME/runs, else ./.flatout/runs]",
        "运行记录的目录，或含 .flatout/runs 的项目目录 [默认：$FLATOUT_HOME/runs，否则 ./.flatout/runs]",
    ),
    (
        "Address to listen on; a port alone means this machine only",
        "监听地址；只给端口表示仅限本机",
    ),
    (
        "Require this token, or a new one; always on for addresses other than loopback",
        "要求此令牌，或新生成一个；监听本机以外的地址时总会要求",
    ),
    (
        "Show and compare all runs in the browser, live",
        "在浏览器中实时查看所有运行并进行对比",
    ),
    (
        "the runs of this project, at http://127.0.0.1:8600/",
        "本项目的运行，地址为 http://127.0.0.1:8600/",
    ),
    ("the runs in these folders", "这些目录中的运行"),
    ("another port of this machine", "本机的另一个端口"),
    ("also require a token on this machine", "在本机也要求令牌"),
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
        "Treat the program as hung after this long without a step: 90s, 5m",
        "多长时间没有一步即视为卡住：90s、5m",
    ),
    (
        "The run: `last`, its name or id, or the folder of its record",
        "记录目录、运行的名字或 id，或 `last`",
    ),
    (
        "Watch a slow training get diagnosed and fixed, in one minute",
        "一分钟演示：慢的训练、慢的原因、修复和证明",
    ),
    (
        "A value in that file to tune, by its path [default: all known names]",
        "该文件中要调的值，按路径给出 [默认：所有认得名字的值]",
    ),
    ("Account", "账户"),
    (
        "Also draw the charts and the epochs as a PNG image",
        "同时把图表和各 epoch 的时间画成 PNG 图片",
    ),
    (
        "Also write an HTML page, with the charts of the first run or GPU log",
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
        "Exit with 1 unless every run gained this much throughput, beyond noise: faster=25%",
        "除非每次运行的吞吐都比第一个高出该值（且超出噪声），否则以 1 退出：faster=25%",
    ),
    ("Print as JSON", "以 JSON 输出"),
    ("Maximum number of trials", "最多试验次数"),
    (
        "Compare runs: what changed, and whether it is more than noise",
        "改动前后：变了什么，是否超出噪声",
    ),
    (
        "CPUs per GPU [default: a GPU's share of the partition's nodes, at most 16]",
        "每个 GPU 的 CPU 数 [默认：分区节点中一个 GPU 应得的份额，至多 16]",
    ),
    (
        "CSV rows; the verdict goes to stderr",
        "CSV 行；结论输出到 stderr",
    ),
    (
        "Column with the entity (stock) of each row, for a table with several entities [default: as in training]",
        "一张表含多个实体（股票）时，标明每行所属实体的列 [默认：与训练时相同]",
    ),
    (
        "Data like the training data; labels are not needed",
        "与训练时同样的数据；不需要标签",
    ),
    (
        "Data like the training data, with labels",
        "与训练时同样的数据，带有标签",
    ),
    (
        "Delete old records; without --yes, only list them",
        "删除旧记录；不加 --yes 只列出会删哪些",
    ),
    (
        "Disable Python stack sampling (20 Hz, out of process)",
        "不读取 Python 代码当前所在位置（每秒 20 次，从进程外读取）",
    ),
    ("Stop after this many seconds", "多少秒后结束"),
    (
        "Random seed; equal seeds give identical files",
        "种子相同则字节完全相同",
    ),
    (
        "Exit with 1 if a run lost more throughput than this, beyond noise: slower=3%",
        "某次运行的吞吐比第一个低得超过该值（且超出噪声）时以 1 退出：slower=3%",
    ),
    (
        "Exit with 1 if the verdict has one of these faults",
        "结论中有这些问题之一时以 1 退出",
    ),
    (
        "Exits 1 if something is broken or misconfigured, 0 otherwise.",
        "有损坏或设置错误时以 1 退出，否则以 0 退出。",
    ),
    (
        "Explain a rule: what it detects, why it is slow, how to fix it",
        "解释一条规则：检测什么、为何慢、怎么办",
    ),
    ("Fail if there is no GPU", "没有 GPU 时报错"),
    (
        "Output file: .parquet, or any other name for CSV [default: CSV on stdout]",
        "要写的文件，要么完整写出要么不写：.parquet，其他后缀为 CSV [默认：CSV 输出到 stdout]",
    ),
    (
        "Files and folders that make up the project",
        "组成项目的文件和目录",
    ),
    (
        "Measure how fast these files, or the files in this folder, can be read",
        "要测量读取速度的文件或目录；只读不写",
    ),
    (
        "Find code that will keep the GPU idle, before you run it",
        "运行之前从源码找出会让 GPU 空闲的写法",
    ),
    (
        "Folder for data, runs and pages: new, empty, or from an earlier demo",
        "存放数据、运行和页面的目录：新建、空目录或以前演示用过的",
    ),
    (
        "Folder for the logs [default: this one]",
        "日志目录 [默认：当前目录]",
    ),
    (
        "Folder of the run record [default: a new one in $FLATOUT_HOME/runs, else ./.flatout/runs]",
        "运行记录的目录 [默认：$FLATOUT_HOME/runs 或 ./.flatout/runs 下的新目录]",
    ),
    ("Output folder: new or empty", "写入的目录：新建或空目录"),
    ("Assume this many usable CPUs", "为可用 CPU 数为该值的机器"),
    (
        "Assume this GPU instead of the one in this machine",
        "为装有该 GPU 的机器，而不是本机",
    ),
    (
        "Additional sbatch options, such as constraint=a100",
        "sbatch 的其他选项，如 constraint=a100",
    ),
    ("GPUs per node [default: 1]", "每个节点的 GPU 数 [默认：1]"),
    (
        "Continue the last search of this command",
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
        "How many seconds to watch; Ctrl-C stops earlier",
        "观察多久；Ctrl-C 可提前结束",
    ),
    ("How to print the findings", "结果的输出格式"),
    ("How to print the values", "数值的输出格式"),
    (
        "Whether an infinite value is an error or counts as missing [default: error]",
        "无穷值：所在行视为无法读取，或当作缺失值 [默认：error]",
    ),
    (
        "Use a recorded run: list what it confirms first, with its cost, and omit what it rules out",
        "结合一次运行记录：被证实的排在前面并给出代价，被推翻的略去",
    ),
    ("Keeps GPUs busy while models train", "让 GPU 在训练时满负荷"),
    (
        "To continue a grid that was killed or interrupted, run the same command again.",
        "被终止或中断后，再次运行同一命令即可从停下的地方继续。",
    ),
    (
        "Language of the output: en or zh-CN [default: from the environment]",
        "显示语言：en 或 zh-CN [默认：环境语言]",
    ),
    (
        "Format the page for printing: light, everything expanded, no buttons",
        "按打印排版：浅色、全部展开、没有按钮",
    ),
    ("Keep this many of the newest records", "保留最新的多少个"),
    ("Do not measure the GPUs", "不测量 GPU"),
    (
        "Keep the program running if flatout is killed [default: stop it]",
        "flatout 被杀死时让程序继续运行（默认一并结束）",
    ),
    (
        "Limits are in the [check] section of the nearest flatout.toml. Exits 1 if an item fails.",
        "阈值写在最近的 flatout.toml 的 [check] 一节中。有任一项不通过时以 1 退出。",
    ),
    ("Read limits from this file", "从该文件读取限值"),
    (
        "Lines instead of a moving line, also on a terminal",
        "逐行输出而不是刷新同一行，在终端上也如此",
    ),
    ("List all rules", "列出全部规则"),
    ("List or delete prepared datasets", "列出或删除准备好的数据集"),
    (
        "List run records, or delete old ones",
        "列出运行记录，或删除旧记录",
    ),
    (
        "Logs of a short-video service in three CSV parts, joined with user and video tables",
        "短视频服务的日志，分三个 CSV，附可连接的用户表和视频表",
    ),
    (
        "Inspect a running program: its processes, its GPU, and where its Python code is",
        "观察已在运行的程序：进程、GPU、Python 代码所在位置",
    ),
    (
        "Check the driver, GPUs, libraries, Python and limits",
        "检查驱动、GPU、库、Python 和各种限制",
    ),
    (
        "Only read the first N files (or images per class)",
        "只看前多少个文件（或每类前多少张图）",
    ),
    (
        "Generate sample data with a known best score",
        "生成试验数据，并给出已知的最佳得分",
    ),
    (
        "Apply the fixes that leave results unchanged; the original files are kept as *.flatout-backup",
        "做不影响结果的修改；旧文件保留在旁边",
    ),
    (
        "Make the program faster while it runs: change settings that do not affect results, measure each change, and keep what helps",
        "在程序运行期间让它更快：更改不影响结果的设置，逐项测量，保留有效的",
    ),
    (
        "Measure each trial for at least this many seconds, and up to three times as long if the rate varies",
        "每次试验至少测量多少秒；波动大时最多延长到三倍",
    ),
    (
        "Measure the peak performance of this machine",
        "测量这台机器的上限",
    ),
    (
        "Memory of another GPU in GiB, to check whether the data fits [default: this machine's]",
        "另一块 GPU 的显存（GiB），用于判断数据是否放得下 [默认：本机的]",
    ),
    (
        "Memory per node, such as 32G [default: the GPUs' share of the partition's nodes]",
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
        "Start no further trial after this time: 90s, 10m, 1h",
        "超过该时间不再开始新的试验：90s、10m、1h",
    ),
    ("Number of nodes", "节点数"),
    (
        "Do not report these rules or domains, separated by commas",
        "不用这些规则或领域，逗号分隔",
    ),
    (
        "Without --write, none of your files are changed. Checkpoints of trials are deleted; those of earlier runs stay.",
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
        "Print one JSON object per line on stdout",
        "在 stdout 上每行一个 JSON 对象",
    ),
    (
        "Print one JSON object per line, the verdict last",
        "每行一个 JSON 对象，最后一行是结论",
    ),
    (
        "Render a run as one self-contained page",
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
        "Try only these knobs, optionally with a range: num_workers,batch_size=32..4096,amp",
        "只调这些参数，可给范围：num_workers,batch_size=32..4096,amp",
    ),
    (
        "Report only these rules or domains, separated by commas",
        "只用这些规则或领域，逗号分隔",
    ),
    ("Only those not used for this many days", "只删除多少天未使用的"),
    ("Partition", "分区"),
    ("Plain lines also on a terminal", "在终端上也逐行输出"),
    (
        "Replay the record of a run, with the same verdict",
        "回放一次运行的记录，给出同样的结论",
    ),
    ("Print JSON", "输出 JSON"),
    (
        "Print JSON; an HTML page is then written only with --html",
        "输出 JSON；此时只有加 --html 才写页面",
    ),
    ("Print Markdown", "输出 Markdown"),
    (
        "Print Markdown; an HTML page is then written only with --html",
        "输出 Markdown；此时只有加 --html 才写页面",
    ),
    (
        "Print a batch script: GPUs, CPUs per GPU, memory, time, log name, and the command inside `flatout run`",
        "输出批处理脚本：GPU、每 GPU 的 CPU、内存、时间、日志名，命令放在 `flatout run` 中",
    ),
    (
        "Findings and account of this rank [default: the rank that the others wait for]",
        "显示该 rank 的诊断结果和时间明细 [默认：其他 rank 在等的那一个]",
    ),
    ("Print the completion script of a shell", "输出 shell 的补全脚本"),
    ("Print the findings as JSON", "以 JSON 输出诊断结果"),
    ("Print the list as JSON", "以 JSON 输出列表"),
    (
        "Print the recipe and the best score as JSON",
        "以 JSON 输出配方和最佳得分",
    ),
    ("Print the result as JSON", "以 JSON 输出结果"),
    ("Quality of service", "服务质量（QOS）"),
    (
        "Read a column as real, integer, category or time, or ignore it; can be repeated [default: inferred from all files]",
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
    ("Confirm the deletion", "确认删除"),
    (
        "Delete records older than this many days",
        "删除早于这么多天的记录",
    ),
    (
        "Delete prepared datasets; they are rebuilt when needed",
        "删除准备好的数据集；需要时会重新生成",
    ),
    (
        "Report the location of every rank after this long without progress: 90s, 5m, 1h or off",
        "这么久没有进展时，报告每个 rank 在哪里：90s、5m、1h 或 off",
    ),
    (
        "What to do with rows that cannot be read: stop with an error, or skip them [default: error]",
        "无法读取的行：训练时报错，或跳过 [默认：error]",
    ),
    (
        "Profile a few steps with PyTorch's profiler: kernels, gaps between them and their cause, tensor cores, copies",
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
        "Run every combination as a task of a job array: an option of the command with its values",
        "把每种组合作为数组的一个任务运行：命令的一个选项及其取值",
    ),
    (
        "Run a checklist before training, or on a finished run",
        "训练前执行检查清单，或对其记录执行",
    ),
    (
        "Runs (`last`, a name, an id, a folder) and logs: nvidia-smi, dmon, gpustat, flatout's CSV, or the output of a program",
        "运行（`last`、名字、id、目录）和日志：nvidia-smi、dmon、gpustat、flatout 的 CSV，或程序打印的内容",
    ),
    ("Number of samples in the dataset", "数据集的样本数"),
    (
        "Print progress and the current bottleneck every few seconds",
        "每隔几秒说明运行情况和拖慢它的原因",
    ),
    ("Follow the job until it finishes", "持续报告直到结束"),
    (
        "Print more; repeat for details",
        "输出更多过程信息；给两次则更详细",
    ),
    (
        "Print nothing during the run or at its end",
        "运行期间和结束时都不输出",
    ),
    (
        "Explain why the GPU was idle during a run, and what to do",
        "说明一次运行中 GPU 为何空闲，以及该怎么做",
    ),
    (
        "Scale the learning rate with the batch size, in the trials and in the result",
        "学习率随 batch 缩放，试验和结果都如此",
    ),
    (
        "Seconds between rows, for logs without timestamps",
        "没有时间列的日志，各行之间的秒数",
    ),
    (
        "Seconds between samples, at least 0.05",
        "采样间隔（秒），最小 0.05",
    ),
    (
        "Evaluate a trained model on other data",
        "在其他数据上评估训练好的模型",
    ),
    ("Submit that script with sbatch", "用 sbatch 提交该脚本"),
    (
        "Serve the newest sample to Prometheus; a port alone listens on loopback",
        "把最新采样作为 Prometheus 页面提供；只给端口时仅监听本机",
    ),
    (
        "Read settings from this file instead of the nearest flatout.toml or pyproject.toml",
        "从该文件读取设置，而不是最近的 flatout.toml 或 pyproject.toml",
    ),
    (
        "Starting values for this machine, each with its reason",
        "适合这台机器的初始设置，每项附理由",
    ),
    (
        "Initial settings, under the names of `flatout run --apply`",
        "起始设置，名字与 `flatout run --apply` 相同",
    ),
    (
        "Settings to apply without editing the program: loader.num_workers=8,amp=bf16,tf32=on,optimizer.fused=on",
        "不改代码就生效的设置：loader.num_workers=8,amp=bf16,tf32=on,optimizer.fused=on",
    ),
    (
        "Predictable share of the variance of returns",
        "收益方差中可预测的比例",
    ),
    (
        "Only serve Prometheus, without a screen or a record: for a daemon",
        "不显示、不写记录，只提供页面：用于守护进程",
    ),
    ("List the prepared datasets", "显示准备好的数据集"),
    (
        "Show what --fix would change, without changing anything",
        "只显示 --fix 会改什么，不做修改",
    ),
    (
        "Slider captchas with the positions of gap and slider in labels.csv",
        "滑块验证码，缺口和滑块的位置在 labels.csv 中",
    ),
    (
        "Start one process per GPU with srun, each with its own record",
        "用 srun 为每个 GPU 启动一个进程，各有自己的记录，而不是共用一个",
    ),
    (
        "Show statistics, times, errors and charts of a job, a run or any log",
        "作业、运行或任意日志的统计、时间、错误和图表",
    ),
    (
        "Stop the program after this many optimizer steps",
        "多少个优化器步之后停止程序",
    ),
    (
        "Maximum number of array tasks to run at once",
        "数组中同时运行的任务数",
    ),
    (
        "Show how flatout reads your data files",
        "说明 flatout 在数据文件中看到什么",
    ),
    (
        "Show files, shards, schema, rows, missing values, splits and memory",
        "说明 flatout 看到什么：文件、分片、列、行数、缺失值、划分、内存",
    ),
    (
        "Export a run for a trace viewer (Perfetto, Chrome)",
        "把一次运行导出到 trace 查看器（Perfetto、Chrome）",
    ),
    (
        "What to do if the program makes no progress",
        "程序没有进展时怎么做",
    ),
    ("Output file; - for stdout", "写到哪里；- 表示标准输出"),
    (
        "Write a run as trace-event JSON for Perfetto and Chrome",
        "把一次运行写成 trace-event JSON，Perfetto 和 Chrome 可以打开",
    ),
    (
        "all rules, and where each is found: source, run",
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
        "Folder of the cache [default: $FLATOUT_CACHE, else ~/.cache/flatout/prepared]",
        "缓存目录 [默认：$FLATOUT_CACHE，否则 ~/.cache/flatout/prepared]",
    ),
    (
        "Columns of a GPU log without a header, as in nvidia-smi --query-gpu=",
        "没有表头的 GPU 日志的列，与 nvidia-smi --query-gpu= 的写法相同",
    ),
    ("The command to check", "将要启动的命令"),
    (
        "The training data [default: from the configuration]",
        "将要读取的数据 [默认：配置中写明的]",
    ),
    (
        "The first rank of a Slurm job: 52098, or 52098_3 for one task of an array",
        "Slurm 作业的第一个 rank：52098，数组作业的某个任务写作 52098_3",
    ),
    (
        "The id of a rule, as shown in findings",
        "规则的 id，与结果中显示的一致",
    ),
    (
        "The job: 52098, or 52098_3 for one task of an array",
        "作业：52098，或数组中的一个任务 52098_3",
    ),
    (
        "Process id of the training program, not of its launcher",
        "进程号：训练程序本身，而不是启动器",
    ),
    (
        "The program and its arguments, as you would type them",
        "程序及其参数，与平时输入的一样",
    ),
    (
        "The program's configuration file; trials use a copy with changed values",
        "程序的配置文件；命令中会换成改过值的副本",
    ),
    (
        "The result is stored as machine.json in $FLATOUT_HOME, or in .flatout.",
        "结果保存为 $FLATOUT_HOME（否则 .flatout）中的 machine.json。",
    ),
    (
        "The run: `last`, its name or id, or its folder",
        "运行：`last`、名字或 id，或其目录",
    ),
    (
        "The runs, baseline first: names, ids, folders, or `last`",
        "要比较的运行，基准放在最前：名字、id、目录或 `last`",
    ),
    ("Same as --format json", "等同于 --format json"),
    ("The shell to generate completions for", "为哪种 shell 补全"),
    (
        "Time limit: 2h, 90m, minutes, hours:minutes:seconds, or days-hours [default: 24:00:00]",
        "时间上限：2h、90m、分钟、时:分:秒 或 天-时 [默认：24:00:00]",
    ),
    (
        "Replay speed as a multiple of real time; 0 is as fast as possible [default: 10 on the screen, else 0]",
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
        "Trainings side by side at most, as many as is measured to be fastest; auto: one per GPU, or up to one per CPU without several GPUs",
        "最多同时进行的训练数，实际数目由实测决定；auto：每个 GPU 一个，没有多个 GPU 时最多每个 CPU 一个",
    ),
    (
        "Try better settings on a program and keep those that measurably help",
        "在程序上试更好的设置，只保留实测有效的",
    ),
    (
        "Watch GPUs, host and processes, and print a verdict at the end",
        "监控 GPU、主机和进程，最后给出结论",
    ),
    (
        "Also watch this process and its children, and stop when it ends",
        "同时监控该进程及其子进程；它结束时一并结束",
    ),
    (
        "Price per hour, for --objective cost",
        "每小时的费用，用于 --objective cost",
    ),
    (
        "What to maximize: samples/s, energy (samples per joule) or cost (samples per unit of money)",
        "优化目标：samples/s、energy（每焦耳样本数）或 cost",
    ),
    (
        "What is trained: lstm, mlp, cnn, transformer, resnet50 …",
        "训练什么：lstm、mlp、cnn、transformer、resnet50 …",
    ),
    (
        "How to fill missing values: mean, zero, forward, or COLUMN=POLICY for one column; can be repeated [default: as in training]",
        "缺失值的处理方式：mean、zero、forward，或用 列名=方式 只针对一列；可重复 [默认：与训练时相同]",
    ),
    (
        "How to fill missing values of numeric columns: error, mean, zero, forward or drop, or COLUMN=POLICY for one column; can be repeated [default: error]",
        "数值列缺失值的处理方式：error、mean、zero、forward 或 drop，或用 列名=方式 只针对一列；可重复 [默认：error]",
    ),
    (
        "Where to write the page [default: report.html in the record's folder]; - for stdout",
        "页面写到哪里 [默认：记录目录中的 report.html]；- 表示 stdout",
    ),
    (
        "With --auto: also allow changes that affect results, checked against the loss: precision, batch, compile, padding",
        "配合 --auto：也允许会改变数值的更改，并检查 loss：precision、batch、compile、padding",
    ),
    (
        "With --auto: do not change these settings",
        "配合 --auto：这些设置保持不变",
    ),
    (
        "With --fix or --diff: also apply fixes that may change results (precision, memory, the order of sums)",
        "与 --fix 或 --diff 合用：也做可能影响结果的修改（精度、内存、求和顺序）",
    ),
    ("Write an HTML page", "写成 HTML 页面"),
    ("Write no run record", "不写运行记录"),
    (
        "Write the findings as JSON to this file",
        "把诊断结果以 JSON 写入该文件",
    ),
    (
        "Write the result to the configuration file and the source; the original files are kept as *.flatout-backup",
        "把结果写入配置文件和源码；旧文件保存为 *.flatout-backup",
    ),
    (
        "Write a detailed log to this file",
        "把 -v 的内容（更详细）写入该文件",
    ),
    (
        "Write, submit and follow Slurm jobs that record themselves",
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
        "a Slurm job: its records, its logs, and sacct data",
        "一个 Slurm 作业：记录、带作业号的日志、sacct 的数据",
    ),
    ("a batch script that records itself", "会自我记录的批处理脚本"),
    (
        "after training: utilization, temperature, memory, epochs",
        "之后：利用率、温度、内存、epoch",
    ),
    ("plain lines, then the verdict", "全部逐行输出，然后给出结论"),
    ("all records, oldest first", "全部记录，最旧的在前"),
    (
        "also how fast these files can be read, cold and warm",
        "以及这些文件冷读和热读的速度",
    ),
    ("any PyTorch program, unchanged", "任意 PyTorch 程序，不改代码"),
    (
        "any program that reports its steps",
        "任意会报告步数的程序，用占位符",
    ),
    (
        "before training: settings, data, GPU, disk",
        "启动前：设置、数据、GPU、磁盘",
    ),
    ("delete it", "确认删除"),
    ("exit 1 if it became slower", "变慢时以 1 退出"),
    ("exit 1 unless it became faster", "没有变快则以 1 退出"),
    (
        "also whether it is slower than an earlier run",
        "以及是否比以前的运行慢",
    ),
    (
        "plain lines for five minutes, then the verdict",
        "逐行输出五分钟，然后给出结论",
    ),
    ("for programs", "供程序读取"),
    ("for a pull request", "用于 pull request"),
    ("for an issue or a pull request", "用于 issue 或 pull request"),
    ("for another machine", "为另一台机器"),
    ("continue after Ctrl-C", "Ctrl-C 之后继续"),
    (
        "apply fixes; originals are kept as *.flatout-backup",
        "修复可以修复的；旧文件保存为 *.flatout-backup",
    ),
    (
        "a Slurm job with several ranks",
        "Slurm 作业的一个 rank，并列出所有 rank",
    ),
    ("one torchrun per node", "每个节点一个 torchrun"),
    (
        "one process and one record per GPU",
        "每个 GPU 一个进程、一份记录",
    ),
    ("only those not used for 30 days", "只删除 30 天内没有用过的"),
    (
        "only the differences from a configuration file",
        "只列出与配置文件不同之处",
    ),
    (
        "only the differences from a recorded run",
        "只列出与一次运行记录不同之处",
    ),
    ("also write the result to the source", "把有效的设置也写入源码"),
    ("submit only if all checks pass", "全部通过才提交"),
    ("delete all prepared datasets", "删除全部准备好的数据集"),
    (
        "report.html next to the record, a summary here",
        "在记录旁写 report.html，并在此显示要点",
    ),
    ("show what --fix would change", "显示 --fix 会改什么"),
    ("the current folder", "当前目录"),
    ("the newest run", "最新的一次运行"),
    ("the newest run, ten times as fast", "最新的一次运行，十倍速"),
    ("the same as a DataLoader call", "同上，写成 DataLoader 调用"),
    (
        "the same for a command: flags, --config and source",
        "同上，依据命令的参数、其 --config 和源码",
    ),
    (
        "the screen; q quits and prints the verdict",
        "监控界面；按 q 结束并给出结论",
    ),
    (
        "these files and folders, as one project",
        "把这些文件和目录当作一个项目",
    ),
    ("until that process ends", "直到该进程结束"),
    (
        "what the rule detects, why it is slow, how to fix it",
        "这条规则检测什么、为何慢、怎么办",
    ),
    (
        "peak performance of this machine, in under a minute",
        "一分钟内测出这台机器的上限",
    ),
    (
        "what this machine has, what is missing, and its impact",
        "这台机器有什么、缺什么、代价是什么",
    ),
    ("list what would be deleted", "看会删除哪些"),
    ("when it is done", "结束之后"),
    (
        "starting values for this machine, with reasons",
        "在这台机器上从哪里开始，每个值附理由",
    ),
    (
        "with the measurements of a recorded run",
        "结合一次运行记录的实测数据",
    ),
    ("When to use color", "何时使用颜色"),
    (
        "Use flatout's own trainer even if PyTorch is installed",
        "即使装有 PyTorch 也使用 flatout 自己的训练引擎",
    ),
    ("logs from other tools", "其他工具写的日志"),
    (
        "The command, such as `run` or `slurm submit` [default: flatout itself]",
        "命令，例如 `run` 或 `slurm submit` [默认：flatout 自身]",
    ),
    (
        "Write the pages of all commands to this folder",
        "把所有命令的手册页写入该目录",
    ),
    ("show the manual page of a command", "阅读某个命令的手册页"),
    ("write one page per command", "每个命令写一页"),
    (
        "Print one manual page, or write all of them",
        "输出手册页，或写出全部手册页",
    ),
    ("Number of GPUs", "…… 以及这样的 GPU 的个数"),
    (
        "Serve flatout's commands to coding agents (Model Context Protocol over stdio)",
        "通过 stdio 向编程 agent 提供 flatout 的命令（Model Context Protocol）",
    ),
    (
        "The only folder that calls can access [default: this one]",
        "调用只能涉及该目录内的文件 [默认：当前目录]",
    ),
    (
        "Disable all tools that run a program or write a file",
        "不提供会运行程序或写入文件的工具",
    ),
    ("usually started by a coding agent", "由 agent 启动，很少手动运行"),
    ("register it with Claude Code", "注册到 Claude Code"),
    ("diagnosis, lint and comparison only", "只提供诊断、检查和对比"),
    (
        "the last run against a saved baseline",
        "把最近一次运行与保存的基线对比",
    ),
    (
        "Compare with this saved baseline; without RUN, the last run is compared",
        "与该基线对比；未指定 RUN 时为 `last`",
    ),
    (
        "Also print GitHub annotations: violated limits, and new findings at their lines",
        "同时输出 GitHub 注解：未通过的条件，以及新问题所在的行",
    ),
    (
        "Save a run under a name, to compare later runs with",
        "用名字保存一次运行，供之后的运行对比",
    ),
    ("save the last run as `main`", "把最近一次运行保存为 `main`"),
    ("list the saved baselines", "已保存的基线"),
    (
        "exit 1 if the last run is slower",
        "把关：最近一次运行变慢则退出码为 1",
    ),
    (
        "Save a run as a baseline: a copy of its record",
        "把一次运行保存为基线：复制其记录",
    ),
    ("List the baselines", "列出基线"),
    ("Delete a baseline; the runs stay", "删除基线；运行记录保留"),
    ("Name of the baseline", "基线的名字"),
    ("Replace an existing baseline of this name", "替换同名的基线"),
    (
        "Load the probe into the program for that time (Python 3.14 or later): steps, waits for batches, findings",
        "在观察期间把探针放入程序（Python 3.14 及以上）：步、等待 batch 的时间、诊断结果",
    ),
    (
        "also steps and waits, on Python 3.14",
        "同时看到步和等待，需 Python 3.14",
    ),
    (
        "GPU-hours of a cluster: allocated, used, wasted, by user, account and cause",
        "集群的 GPU 小时：分配、使用、浪费，按用户、账户和原因统计",
    ),
    ("the last seven days, all users", "最近七天，所有用户"),
    ("with the records of all users", "连同所有用户的记录"),
    ("text for an e-mail to each user", "给每个用户的邮件文本"),
    ("where sacct cannot be called", "无法调用 sacct 时"),
    (
        "From when on: 7d, 12h, 4w, or a date as in 2026-11-01 [default: 7d]",
        "起始时间：7d、12h、4w，或日期如 2026-11-01 [默认：7d]",
    ),
    ("Until when [default: now]", "截止时间 [默认：现在]"),
    (
        "Only these users, separated by commas",
        "只统计这些用户，用逗号分隔",
    ),
    ("Only these accounts", "只统计这些账户"),
    ("Only these partitions", "只统计这些分区"),
    (
        "Folders with flatout's records, of one user or with a folder per user [default: $FLATOUT_HOME/runs, else ./.flatout/runs]",
        "flatout 记录所在的目录：单个用户的，或每个用户一个子目录 [默认：$FLATOUT_HOME/runs，否则 ./.flatout/runs]",
    ),
    (
        "Read this file instead of calling sacct, `-` for stdin: the output of sacct --parsable2 with its header",
        "读取此文件而不调用 sacct（`-` 为标准输入）：sacct --parsable2 带表头的输出",
    ),
    (
        "Every user, account and job, not the costliest only",
        "列出全部用户、账户和作业，而不只是浪费最多的",
    ),
    ("Also write it as a page", "同时写成网页"),
    (
        "Print text for an e-mail to each user whose jobs are worth a talk",
        "为作业值得沟通的每个用户输出邮件文本",
    ),
    (
        "For administrators: print the line that makes Slurm record every job; nothing is changed",
        "供管理员使用：输出让 Slurm 记录所有作业的那一行；不做任何修改",
    ),
    (
        "Where the records of all users go, a folder for each [default: every user's own ~/.flatout]",
        "所有用户的记录存放处，每人一个目录 [默认：各用户自己的 ~/.flatout]",
    ),
    (
        "for administrators: record every job",
        "供管理员使用：记录所有作业",
    ),
    (
        "one combination per GPU, if there are several",
        "有多个 GPU 时，每个 GPU 一个组合",
    ),
    (
        "Train the combinations as tasks of a Slurm array; defaults are in [slurm] of the nearest flatout.toml",
        "以 Slurm 数组任务训练各组合；默认值写在最近的 flatout.toml 的 [slurm] 一节",
    ),
    (
        "GPUs of each task [default: 1, or 0 for device cpu]",
        "每个任务的 GPU 数 [默认：1；device 为 cpu 时为 0]",
    ),
    (
        "Memory of each task, as in 32G [default: the GPUs' share of the partition's nodes]",
        "每个任务的内存，如 32G [默认：分区节点中这些 GPU 应得的份额]",
    ),
    (
        "Time limit of each task: 2h, 90m, or as Slurm writes it [default: 24:00:00]",
        "每个任务的时间上限：2h、90m，或 Slurm 的写法 [默认：24:00:00]",
    ),
    (
        "Train only this combination, counted from 1",
        "只训练第几个组合（从 1 起）",
    ),
    ("Seconds between samples", "采样间隔（秒）"),
    ("on the cluster, for the next line", "在集群上执行，供下一行使用"),
];
