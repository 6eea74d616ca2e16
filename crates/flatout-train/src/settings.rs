//! Every setting, declared once. Flags, YAML keys, defaults and help all come from [`SETTINGS`]; [`Settings`] is the typed result;
//! `read` turns one written value into one of its kind.

mod read;
mod typed;

pub use typed::{Amp, ClassWeight, PerColumn, Settings};

use flatout_core::spelling::distance;
use flatout_core::{Message, message};
use std::collections::BTreeMap;

/// What a setting's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// A whole number, 0 or more.
    Count,
    Real,
    /// true or false; a flag without a value is true.
    Flag,
    Choice(&'static [&'static str]),
    /// Several words with commas between them; a flag may be given several times. What one of them looks like.
    List(&'static str),
    /// `true`, `false`, `bf16`, `fp16`, `tf32`, `off`.
    Amp,
}

pub struct Setting {
    /// With underscores; dashes are the same.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: Kind,
    /// As a person would write it; empty for none.
    pub default: &'static str,
    pub help: fn() -> Message,
    /// Why this engine does not need it. Such settings are accepted, and this is said.
    pub pointless: Option<fn() -> Message>,
}

macro_rules! settings {
    ($($name:ident $([$($alias:ident),*])? : $kind:expr, $default:literal, $en:literal, $zh:literal $(, pointless $why_en:literal, $why_zh:literal)?;)*) => {
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            aliases: &[$($(stringify!($alias)),*)?],
            kind: $kind,
            default: $default,
            help: || message!(en: $en, zh: $zh),
            pointless: settings!(@why $($why_en, $why_zh)?),
        }),*];
    };
    (@why) => { None };
    (@why $en:literal, $zh:literal) => { Some(|| message!(en: $en, zh: $zh)) };
}

settings! {
    data [data_dir, path, dataset_path]: Kind::Text, "", "folder or file to train on", "训练数据所在的文件夹或文件";
    label [target]: Kind::Text, "", "column to predict, or several separated by commas [default: the generated data's own]", "要预测的列；可用逗号给出多列 [默认：生成数据自带的标签]";
    validation_ratio [validation_split, val_ratio]: Kind::Real, "0.2", "fraction of the samples used for validation", "留作验证的样本比例";
    validation_data [val_data]: Kind::Text, "", "file or folder to validate on, in place of a share of the data; for images, folders train/ and val/ (and test/) in the data are used by themselves", "用于验证的文件或文件夹，代替按比例划分；图像数据中的 train/、val/（及 test/）文件夹会自动使用";
    test_data: Kind::Text, "", "file or folder that is scored once at the end with the best checkpoint", "训练结束后用最佳检查点评估一次的文件或文件夹";
    test_ratio [test_split]: Kind::Real, "0", "fraction of the samples (the newest if there are times) that is evaluated once at the end with the best checkpoint", "训练结束后用最佳检查点评估一次的样本比例（有时间列时取最新的样本）";
    test_from: Kind::Text, "", "start of the test split, as a date or time; needs validation_from", "从哪个日期或时间起的样本作为测试部分；需同时设定 validation_from";
    entity [entity_column]: Kind::Text, "", "column with the entity (stock) of each row, for a table with several entities; without it, each Parquet file is one entity", "一张表含多个实体（股票）时，标明每行所属实体的列；不设时每个 Parquet 文件为一个实体";
    time [time_column]: Kind::Text, "", "column with times; a table is then split by time, with the newest rows for validation [panels: detected by type or name]", "时间列；设定后表格按时间划分，最新的行用于验证 [面板数据：按类型或列名自动识别]";
    validation_from [val_from]: Kind::Text, "", "start of the validation split, as a date or time, instead of a fraction", "从哪个日期或时间起的样本留作验证，代替按比例划分";
    missing: Kind::List("[COLUMN=]POLICY"), "", "how to fill missing values of numeric columns: error, mean (of the training split), zero, forward (the previous value) or drop (the row), for all columns or for one; can be repeated [default: error, or the setting in dataset.json]", "数值列的缺失值：error、mean（训练部分的均值）、zero、forward（前一个值）或 drop（丢弃该行）；可对所有列或某一列设置，可重复 [默认：error，或 dataset.json 中的设定]";
    bad_rows: Kind::Choice(flatout_data::load::policies::BAD_ROWS), "error", "rows that cannot be read: stop with an error, or skip and count them", "无法读取的行：报错，或跳过并计数";
    infinite: Kind::Choice(flatout_data::load::policies::INFINITE), "error", "infinite values: an error, or counted as missing", "无穷值：所在行视为无法读取，或当作缺失值";
    encoding: Kind::Text, "", "encoding of text files, such as gbk, gb18030, big5 or latin1 [default: utf-8]", "文本文件的编码，例如 gbk、gb18030、big5 或 latin1 [默认：utf-8]";
    column_type [column, column_types]: Kind::List("COLUMN=TYPE"), "", "read a column as real, integer, category or time, or ignore it; can be repeated [default: inferred from all files]", "指定某列的类型：real、integer、category、time，或 ignore（忽略）；可重复 [默认：由全部文件推断]";
    horizon: Kind::Count, "1", "number of rows between the end of a window and its label; 0 uses the label of the last row, for labels that already look ahead", "从窗口最后一行到其标签的行数；0 表示最后一行自身的标签（标签本身已向前看时使用）";
    gap [embargo]: Kind::Count, "0", "number of rows before the validation split to exclude from training, for labels that look that far ahead", "验证部分之前不用于训练的行数，用于向前看这么多行的标签";
    min_history: Kind::Count, "0", "rows that a validation sample needs before its label, so that windows of different lengths are scored on the same samples; 0: the window's own length [grids: the longest window]", "验证样本在其标签之前必须有的行数，使不同长度的窗口在相同样本上评分；0 表示窗口自身的长度 [网格：最长的窗口]";
    layout: Kind::Choice(crate::data::LAYOUTS), "auto", "how to read the files: panel (one file per stock, or --entity), rows, or images; auto detects it", "文件的含义：panel（每只股票一个文件，或用 --entity）、rows（表格行）或 images（图像）；auto 自动判断";
    task: Kind::List("[COLUMN=]TASK"), "auto", "what to predict: regression (a number), binary (yes or no) or classes (one of several), for all labels or for one; auto infers it from the label; can be repeated", "预测目标：regression（数值）、binary（是/否）或 classes（多类）；auto 由标签决定；可对所有标签或某一标签设置，可重复";
    loss: Kind::List("[COLUMN=]LOSS"), "auto", "what to minimize: mse, mae, huber or quantile for numbers, bce or focal for yes/no labels, cross_entropy or focal for classes, for all matching labels or for one; can be repeated [default: mse, bce, cross_entropy]", "最小化的损失：数值用 mse、mae、huber 或 quantile，是/否用 bce 或 focal，多类用 cross_entropy 或 focal；可对所有相符的标签或某一标签设置，可重复 [默认：mse、bce、cross_entropy]";
    quantiles: Kind::Text, "0.1,0.5,0.9", "loss quantile: the quantiles to predict", "loss quantile：要预测的分位数";
    focal_gamma: Kind::Real, "2", "loss focal: the exponent of 1 − p", "loss focal：1 − p 的指数";
    label_smoothing: Kind::Real, "0", "fraction of a class label that is spread over all classes, as in PyTorch", "分摊到所有类别上的标签份额，与 PyTorch 相同";
    label_weight: Kind::List("COLUMN=WEIGHT"), "", "weight of one label's loss; can be repeated [default: 1]", "多个标签中某一标签的损失权重；可重复 [默认：1]";
    class_weight [class_weights]: Kind::List("balanced|[LABEL.]CLASS=WEIGHT"), "", "weight of the samples of a class; balanced: samples / (classes · samples of the class) in the training split; can be repeated [default: 1]", "某一类别样本的权重；balanced：训练部分的 样本数 /（类别数 · 该类样本数）；可重复 [默认：1]";
    sample_weight [weight_column]: Kind::Text, "", "column with the weight of each row in the loss; it is not used as a feature, and scores ignore it", "存放每行损失权重的列；它不作为特征，得分也不使用它";
    huber_delta: Kind::Real, "1", "loss huber: errors above this many standard deviations of the label count linearly", "loss huber：超过标签这么多个标准差的误差按线性计";
    model_type [model]: Kind::Choice(crate::models::NAMES), "auto", "lstm, gru, tcn or transformer for sequences; mlp, wide-deep or tabular-transformer for rows; cnn, resnet or (for positions) heatmap for images; auto: lstm, mlp or cnn", "模型：序列用 lstm、gru、tcn 或 transformer，表格用 mlp、wide-deep 或 tabular-transformer，图像用 cnn、resnet 或 heatmap（位置）；auto 即 lstm、mlp 或 cnn";
    epochs [max_epochs, num_epochs]: Kind::Text, "auto", "passes over the training data; auto: 10, and more for small data (about 6,000 updates, at most 100 passes)", "训练轮数；auto 为 10 轮，数据较少时更多（约 6,000 次更新，最多 100 轮）";
    batch_size: Kind::Text, "auto", "samples that go through the model at once; auto measures and chooses", "一次通过模型的样本数；auto 表示实测后自动选择";
    keep_lr: Kind::Flag, "false", "do not scale the learning rate with an automatically chosen batch size", "不随自动选择的 batch 大小缩放学习率";
    hidden_size: Kind::Count, "256", "width of the hidden layers", "隐藏层宽度";
    num_layers: Kind::Count, "", "hidden layers; residual blocks of a tcn; depth of a resnet: 10, 18 or 34 [default: 2; tcn, cnn, heatmap: 4; resnet: 18]", "隐藏层数；tcn 为残差块数；resnet 为深度：10、18 或 34 [默认：2；tcn、cnn、heatmap：4；resnet：18]";
    bidirectional: Kind::Flag, "false", "lstm and gru: read each window in both directions", "lstm 与 gru：沿两个方向读取每个窗口";
    num_heads [heads, nhead]: Kind::Count, "4", "transformer, tabular-transformer: attention heads per layer; must divide hidden_size", "transformer、tabular-transformer：每层的注意力头数；须整除 hidden_size";
    kernel_size: Kind::Count, "3", "tcn: steps that one convolution reads; block i reads steps 2^i apart", "tcn：一次卷积读取的步数；第 i 个块读取的步之间相隔 2^i 步";
    entity_embedding_dim [stock_embedding_dim, embedding_dim]: Kind::Count, "16", "width of an entity's embedding; 0 for none", "实体（股票）嵌入的维度；0 表示不用";
    entity_dropout: Kind::Real, "0.05", "fraction of the training samples whose entity is hidden from the model, so that it learns an embedding for unknown entities; 0: unknown entities are an error; any other value also hides category values in 1% of the training rows, unless that many are missing", "训练样本中隐去实体的比例，使模型学到未知实体的嵌入；0 表示拒绝未知实体；非 0 时还会在 1% 的训练行中隐去类别值（缺失值已有这么多时除外）";
    past_labels: Kind::Flag, "false", "add past values of the label as an input column; needs a horizon of 1 or more", "把标签自身的历史值作为一列输入；需要 horizon 不小于 1";
    column_embedding_dim: Kind::List("COLUMN=N"), "", "embedding width of one category column; can be repeated [default: entity_embedding_dim]", "某个类别列的嵌入维度；可重复 [默认：与 entity_embedding_dim 相同]";
    min_count: Kind::List("[COLUMN=]N"), "", "treat category values with fewer rows than this in the training split as unknown, for all columns or for one; can be repeated [default: every value has its own embedding]", "训练部分中出现次数少于此值的类别值按未知值处理；可对所有列或某一列设置，可重复 [默认：每个值都有自己的嵌入]";
    hash_size: Kind::List("[COLUMN=]N"), "", "hash category columns with more than N values into N codes, for all columns or for one; can be repeated [default: no hashing]", "取值超过 N 个的类别列，用哈希映射到 N 个编码；可对所有列或某一列设置，可重复 [默认：不哈希]";
    sequence_length [seq_len, window]: Kind::Count, "60", "rows per window", "窗口长度（行数）";
    dropout: Kind::Real, "0", "fraction of units dropped between layers", "层间 dropout 比例";
    learning_rate [lr]: Kind::Real, "0.001", "learning rate; a given value is used as it is, the default is for batch size 512", "学习率；给定时原样使用，默认值对应 batch 512";
    betas: Kind::Text, "0.9,0.999", "Adam and AdamW: decay of the two moments", "Adam 与 AdamW：两个矩的衰减系数";
    eps [epsilon]: Kind::Real, "1e-8", "Adam and AdamW: term added to the denominator", "Adam 与 AdamW：加到分母上的数";
    momentum: Kind::Real, "0.9", "SGD: momentum; 0 for none", "SGD：动量；0 表示不用";
    weight_decay: Kind::Real, "0.01", "decoupled weight decay", "权重衰减（解耦）";
    optimizer: Kind::Choice(&["adamw", "adam", "sgd"]), "adamw", "optimizer", "优化器";
    ema [ema_decay]: Kind::Real, "0", "decay of an exponential moving average of the weights, updated after each step; the averaged weights are evaluated, saved and used by predict; 0: none", "每步之后更新的权重指数滑动平均的衰减系数；评估、保存和 predict 使用平均后的权重；0 表示不用";
    lr_schedule [scheduler]: Kind::Choice(crate::schedule::NAMES), "constant", "how the learning rate changes after the warm-up; onecycle rises and falls once, step and plateau multiply it by lr_gamma", "预热后学习率的变化方式；onecycle 升降一次，step 与 plateau 每次乘以 lr_gamma";
    lr_step_size [step_size]: Kind::Count, "10", "lr_schedule step: epochs between two reductions", "lr_schedule step：两次降低之间的轮数";
    lr_gamma [gamma, lr_factor]: Kind::Real, "0.1", "lr_schedule step and plateau: factor that multiplies the learning rate", "lr_schedule step 与 plateau：学习率乘以的系数";
    lr_patience: Kind::Count, "3", "lr_schedule plateau: evaluations without a better score before a reduction", "lr_schedule plateau：降低前允许的无提升评估次数";
    warmup [warmup_steps]: Kind::Count, "0", "number of steps in which the learning rate rises", "学习率预热步数";
    device: Kind::Text, "auto", "auto, cpu, cuda or cuda:N", "auto、cpu、cuda 或 cuda:N";
    amp [use_amp, precision, mixed_precision]: Kind::Amp, "true", "mixed precision on CUDA: bf16, fp16, tf32 or off; true is bf16", "CUDA 混合精度：bf16、fp16、tf32 或 off；true 即 bf16";
    gradient_accumulation_steps [accumulation_steps]: Kind::Count, "1", "micro-batches per update", "每次更新累积的 micro-batch 数";
    clip_norm [max_grad_norm, grad_clip]: Kind::Real, "1", "maximum global norm of the gradients; 0 for none", "梯度全局范数上限；0 表示不裁剪";
    select [monitor]: Kind::Text, "loss", "score that decides the best checkpoint, early stopping, plateau and the order of a grid: loss, mse, mae, directional_accuracy, ic, daily_ic, rank_ic, accuracy, top5_accuracy, auc, precision, recall or f1; of one of several labels: LABEL.SCORE", "决定最佳检查点、提前停止、plateau 与网格排序的得分：loss、mse、mae、directional_accuracy、ic、daily_ic、rank_ic、accuracy、top5_accuracy、auc、precision、recall 或 f1；多个标签中某一个的得分：标签.得分";
    eval_interval: Kind::Count, "5", "epochs between evaluations; by default every epoch with early_stopping or lr_schedule plateau", "每隔几轮评估一次；使用 early_stopping 或 plateau 且未给定时每轮评估";
    checkpoint_interval [save_interval]: Kind::Count, "5", "epochs between checkpoints", "每隔几轮保存检查点";
    log_interval: Kind::Count, "0", "steps between progress lines; 0: one line per epoch", "每隔几步输出一行进度；0 表示每轮一行";
    early_stopping [patience]: Kind::Count, "0", "stop after this many evaluations without a better score; 0: never", "连续多少次评估无提升即停止；0 表示不停";
    limit: Kind::Count, "0", "use only the first N entities or files; 0: all", "只用前多少个实体或文件；0 表示全部";
    limit_rows: Kind::Count, "0", "use only the first N rows of a table; 0: all", "只用表格的前多少行；0 表示全部";
    memory_limit: Kind::Text, "", "memory that the model may use, such as 8GiB [default: the free memory]", "模型可用的内存上限，例如 8GiB [默认：空闲内存]";
    threads: Kind::Count, "0", "CPU threads; 0: all usable CPUs, or fewer if short steps run faster", "CPU 线程数；0 表示全部可用 CPU，步骤很短时实测选用更少的线程";
    deterministic: Kind::Flag, "false", "make reruns bit-identical: reuse the batch size measured in the previous run", "重跑结果逐位相同：沿用上次实测选定的 batch 大小";
    seed: Kind::Count, "42", "random seed", "随机种子";
    output_dir [out, output]: Kind::Text, "out", "folder for checkpoints, metrics and the run record", "保存检查点、指标与运行记录的文件夹";
    init [init_from]: Kind::Text, "", "checkpoint, or output folder (its best checkpoint), that provides the initial weights of a new training; tensors of other shapes are skipped", "新训练以哪个检查点或输出文件夹（取最佳）的权重开始；形状不同的张量不使用";
    resume: Kind::Text, "", "checkpoint or output folder to resume from", "从哪个检查点或输出文件夹继续";
    pipeline: Kind::Choice(&["auto", "naive"]), "auto", "naive trains like a typical first script: one thread, the loss read back after every step", "naive 按初版脚本的方式训练：单线程、每步读回损失";
    channels [image_channels]: Kind::Count, "", "channels of images: 1 (grayscale) or 3 (RGB) [default: those of the files]", "图像通道数：1（灰度）或 3（RGB） [默认：与文件相同]";
    input_size: Kind::Text, "", "resize images to WIDTH,HEIGHT; the size of tables comes from the data", "图像缩放到的 宽,高；表格由数据本身决定";
    flip: Kind::Flag, "false", "randomly flip half of the training images horizontally; position labels move along", "随机左右翻转一半的训练图像；位置标签随之变换";
    crop_padding: Kind::Count, "0", "randomly shift training images by up to this many pixels; position labels move along", "随机平移训练图像的最大像素数；位置标签随之变换";
    rotate [rotation, degrees]: Kind::Real, "0", "randomly rotate training images by up to this many degrees", "随机旋转训练图像的最大角度（度）";
    zoom [random_scale]: Kind::Real, "0", "randomly zoom training images in or out by up to this fraction (0.2: 80% to 120%)", "随机缩放训练图像的最大比例（0.2 表示 80% 至 120%）";
    color_jitter [jitter]: Kind::Real, "0", "randomly change brightness, contrast and saturation of training images by up to this fraction", "随机改变训练图像亮度、对比度与饱和度的最大比例";
    cutout [random_erasing]: Kind::Count, "0", "blank a random square of this size in training images, in pixels", "在训练图像中随机遮挡边长为该像素数的方块";
    verify_cache: Kind::Flag, "false", "compare all bytes of the data with the cached data, instead of sampling", "用数据的全部字节（而不只是抽样）核对已保存的解析结果";
    cache: Kind::Flag, "true", "cache the parsed data in the user's cache folder for the next run", "把解析后的数据保存在用户缓存目录，供下次启动使用";
    num_workers [workers]: Kind::Count, "", "DataLoader worker processes", "数据加载进程数", pointless "samples are indices into one copy of the data: there are no worker processes", "样本只是同一份数据的索引：没有加载进程";
    prefetch_factor: Kind::Count, "", "batches prefetched per worker", "每个 worker 预取的 batch 数", pointless "batches are gathered where they are used: there is nothing to prefetch", "batch 在使用处直接收集：无需预取";
    pin_memory: Kind::Flag, "", "page-locked memory for batches", "锁页内存", pointless "only indices are copied, from memory that is always pinned", "只拷贝索引，且始终使用锁页内存";
    persistent_workers: Kind::Flag, "", "keep worker processes between epochs", "保留加载进程", pointless "there are no worker processes to keep", "没有需要保留的加载进程";
    non_blocking: Kind::Flag, "", "asynchronous copies", "异步拷贝", pointless "copies are always asynchronous", "拷贝总是异步的";
    channels_last: Kind::Flag, "", "memory format of images", "图像内存格式", pointless "the engine chooses the memory format itself", "引擎自行选择内存格式";
    gradient_checkpointing [activation_checkpointing]: Kind::Flag, "", "recompute activations to save memory", "重算激活值以节省内存", pointless "a batch that does not fit is computed in parts that do, with the same result and without computing anything twice", "放不下的 batch 会拆成放得下的几部分计算，结果相同，也不重复计算";
    compile_model: Kind::Flag, "", "compile the model", "编译模型", pointless "every model is compiled into one step plan", "所有模型都会编译成一个步骤计划";
    compile_mode: Kind::Text, "", "mode of compilation", "编译方式", pointless "there is only one mode: the whole step", "只有一种方式：整步编译";
}

/// The setting of a name or alias, dashes or underscores.
pub fn find(key: &str) -> Option<&'static Setting> {
    let key = key.replace('-', "_").to_ascii_lowercase();
    SETTINGS
        .iter()
        .find(|setting| setting.name == key || setting.aliases.contains(&key.as_str()))
}

/// Whether a value is the one that a setting has where nobody gives it.
pub fn is_default(name: &str, value: &str) -> bool {
    find(name).is_some_and(|setting| setting.default == value)
}

/// The nearest name there is, for a misspelt one.
pub fn nearest(key: &str) -> Option<String> {
    let key = key.replace('-', "_").to_ascii_lowercase();
    let names = SETTINGS
        .iter()
        .flat_map(|setting| std::iter::once(&setting.name).chain(setting.aliases));
    let scored = names.map(|name| (distance(&key, name), name));
    let (score, name) = scored.min_by_key(|(score, _)| *score)?;
    (score <= key.len().div_ceil(3)).then(|| (*name).to_owned())
}

/// Values as they were written, by a setting's name.
pub type Values = BTreeMap<&'static str, String>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_values_of_their_kind_and_names_are_unique() {
        Settings::of(&Values::new()).unwrap();
        let mut names: Vec<&str> = SETTINGS
            .iter()
            .flat_map(|s| std::iter::once(s.name).chain(s.aliases.iter().copied()))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn amp_means_the_same_however_it_is_written() {
        for text in ["true", "True", "bf16", "BF16"] {
            assert_eq!(
                Settings::of(&[("amp", text.to_owned())].into()).unwrap().amp,
                Amp::Bf16,
                "{text}"
            );
        }
        assert_eq!(
            Settings::of(&[("amp", "false".to_owned())].into()).unwrap().amp,
            Amp::Off
        );
        assert!(Settings::of(&[("amp", "maybe".to_owned())].into()).is_err());
    }

    #[test]
    fn wrong_values_are_named() {
        let error = |name: &'static str, value: &str| {
            Settings::of(&[(name, value.to_owned())].into())
                .unwrap_err()
                .to_string()
        };
        assert!(error("batch_size", "-3").contains("`batch_size` is `-3`"));
        for value in ["0", "-1", "1.5", "many"] {
            assert!(error("batch_size", value).ends_with("expected a whole number, 1 or more"));
            assert!(error("epochs", value).ends_with("expected a whole number, 1 or more"));
        }
        assert!(error("warmup", "-1").ends_with("expected a whole number, 0 or more"));
        assert!(error("memory_limit", "much").contains("8GiB"));
        let limit = |text: &str| {
            Settings::of(&[("memory_limit", text.to_owned())].into())
                .unwrap()
                .memory_limit
        };
        assert_eq!(
            [limit("8GiB"), limit("1.5 mb"), limit("1e3"), limit("")],
            [Some(8 << 30), Some(1_500_000), Some(1000), None]
        );
        assert!(error("hidden_size", "0").contains("1 or more"));
        assert!(error("optimizer", "lion").contains("adamw"));
        assert_eq!(nearest("btach_size").as_deref(), Some("batch_size"));
        assert_eq!(nearest("completely_different"), None);
        assert_eq!(find("stock-embedding-dim").unwrap().name, "entity_embedding_dim");
    }
}
