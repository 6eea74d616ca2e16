//! A trial leaves the program's files alone, and the program reads back whatever it saves.

use crate::support::torch_python;
use crate::trying::{Try, words};

const TRAINING: &str = "import glob, io, os, pathlib, pickle, shutil, sys, tempfile, torch
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8)
here = os.getcwd()

def save(path, value):
    torch.save(torch.tensor(value), path)

def load(path):
    return torch.load(path).item()

def steps():
    step = 0
    while True:
        x = torch.randn(8, 8)
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        step += 1
        yield step
";

/// Runs a program in one trial; its assertions fail the trial.
fn tried(place: &Try, program: &str) -> Option<String> {
    let python = torch_python()?;
    place.script("train.py", &format!("{TRAINING}{program}"));
    let output = place.tune(&["--max-trials", "1"], &[python.to_str()?, "train.py"]);
    assert!(output.status.success(), "{}", words(&output));
    Some(words(&output))
}

/// What is in the program's folder; it has the temporary files of flatout and PyTorch, too.
fn names(place: &Try) -> Vec<String> {
    const OTHERS: [&str; 4] = ["home", "train.py", "flatout-tune", "torchinductor"];
    let entries = std::fs::read_dir(place.folder.path()).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !OTHERS.iter().any(|other| name.starts_with(other)))
        .collect();
    names.sort();
    names
}

/// The README's own example saves its scale before it trains and reads it with every item.
#[test]
fn what_is_saved_before_the_first_step_stays() {
    let place = Try::new();
    let program = "
save('scale.pt', 1)
assert load('scale.pt') == 1
for step in steps():
    assert load('scale.pt') == 1
";
    if tried(&place, program).is_some() {
        assert_eq!(names(&place), ["scale.pt"]);
    }
}

#[test]
fn checkpoints_are_read_back_and_thrown_away() {
    let place = Try::new();
    place.script("best.pt", "precious");
    let program = "
for step in steps():
    save('best.pt', step)
    assert load('best.pt') == step and load(pathlib.Path(here) / 'best.pt') == step
    assert torch.load('best.pt', mmap=True).item() == step
    save('last.tmp', step)
    os.replace('last.tmp', 'last.pt')
    assert load('last.pt') == step and not os.path.exists('last.tmp')
    with open('file.ckpt.new', 'wb') as file:
        torch.save(torch.tensor(step), file)
    os.rename('file.ckpt.new', 'file.ckpt')
    assert load('file.ckpt') == step
    with open('object.pt', 'wb') as file:
        torch.save(torch.tensor(step), file)
    assert pathlib.Path('object.pt').exists() and load('object.pt') == step
    shutil.copy('object.pt', 'copied.pth')
    assert load('copied.pth') == step and os.path.getsize('copied.pth') == os.path.getsize('object.pt')
    found = {os.path.basename(path) for path in glob.glob('*.p*')}
    assert {'best.pt', 'last.pt', 'object.pt', 'copied.pth', 'train.py'} <= found, found
    os.remove('copied.pth')
    assert not os.path.exists('copied.pth') and 'copied.pth' not in os.listdir('.')
    if not os.path.lexists('link.pt'):
        os.symlink('last.pt', 'link.pt')
    assert load('link.pt') == step
    folder = 'checkpoint-%d' % step
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'state.json'), 'w') as file:
        file.write('{}')
    save(os.path.join(folder, 'model.bin'), step)
    assert load(os.path.join(folder, 'model.bin')) == step and os.listdir(folder)
    if step > 1:
        shutil.rmtree('checkpoint-%d' % (step - 1))
    assert [path.name for path in pathlib.Path('.').glob('checkpoint-*')] == [folder]
";
    if tried(&place, program).is_some() {
        assert_eq!(names(&place), ["best.pt"]);
        assert_eq!(
            std::fs::read_to_string(place.folder.path().join("best.pt")).unwrap(),
            "precious"
        );
    }
}

/// Programs that keep only their last checkpoints would remove those of the training before.
#[test]
fn older_checkpoints_are_not_removed() {
    let place = Try::new();
    std::fs::create_dir(place.folder.path().join("checkpoint-900")).unwrap();
    place.script("checkpoint-900/model.bin", "precious");
    place.script("old.ckpt", "precious");
    let program = "
save('old.ckpt', 0)
assert load('old.ckpt') == 0
for step in steps():
    if step == 3:
        os.remove('old.ckpt')
        shutil.rmtree('checkpoint-900')
        assert not os.path.isdir('checkpoint-900') and 'checkpoint-900' not in os.listdir('.')
        os.makedirs('checkpoint-900')
        save('checkpoint-900/model.bin', step)
        assert load('checkpoint-900/model.bin') == step
    with open('log.txt', 'a') as log:
        log.write('step %d' % step)
";
    if tried(&place, program).is_some() {
        assert_eq!(names(&place), ["checkpoint-900", "log.txt", "old.ckpt"]);
        for kept in ["checkpoint-900/model.bin", "old.ckpt"] {
            let text = std::fs::read_to_string(place.folder.path().join(kept)).unwrap();
            assert_eq!(text, "precious", "{kept}");
        }
    }
}

/// Workers of a loader, forked or spawned, read what the training process saved.
#[test]
fn other_processes_of_the_trial_read_it_too() {
    let place = Try::new();
    let program = "
class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.full((8,), float(load('scale.pt'))), float(os.path.exists('never.pt'))

if __name__ == '__main__':
    for step in steps():
        if step in (2, 12):
            save('scale.pt', step)
            for way in ('fork', 'spawn') if step == 2 else ('fork',):
                loader = torch.utils.data.DataLoader(Items(), batch_size=8, num_workers=1, multiprocessing_context=way)
                for x, missing in loader:
                    assert x.mean().item() == step and missing.sum().item() == 0
";
    if tried(&place, program).is_some() {
        assert!(names(&place).is_empty(), "{:?}", names(&place));
    }
}
