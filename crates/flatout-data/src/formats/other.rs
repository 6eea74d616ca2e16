//! Files that are no tables of text, told by their first bytes: read as CSV they would be thousands of columns of nonsense.

use crate::DataError;
use std::path::Path;

/// First bytes, the format's name, and the Python that makes a Parquet file of one: `{0}` is read, `{1}` written.
const OTHERS: &[(&[u8], &str, &str)] = &[
    (
        b"FEA1",
        "Feather version 1",
        "import pandas; pandas.read_feather('{0}').to_parquet('{1}')",
    ),
    (b"PAR1", "Parquet", "import shutil; shutil.copy('{0}', '{1}')"),
    (
        b"PK\x03\x04",
        "zip (.xlsx)",
        "import pandas; pandas.read_excel('{0}').to_parquet('{1}')",
    ),
    (
        b"\x89HDF",
        "HDF5",
        "import pandas; pandas.read_hdf('{0}').to_parquet('{1}')",
    ),
    (
        b"SQLite format 3",
        "SQLite",
        "import pandas, sqlite3; pandas.read_sql('select * from TABLE', sqlite3.connect('{0}')).to_parquet('{1}')",
    ),
    (
        b"\x80\x02",
        "pickle",
        "import pandas; pandas.read_pickle('{0}').to_parquet('{1}')",
    ),
    (
        b"\x80\x03",
        "pickle",
        "import pandas; pandas.read_pickle('{0}').to_parquet('{1}')",
    ),
    (
        b"\x80\x04",
        "pickle",
        "import pandas; pandas.read_pickle('{0}').to_parquet('{1}')",
    ),
    (
        b"\x80\x05",
        "pickle",
        "import pandas; pandas.read_pickle('{0}').to_parquet('{1}')",
    ),
];

/// How many bytes tell.
pub const FIRST_BYTES: usize = 16;

/// Refuses what begins like another format.
pub fn refuse(path: &Path, first: &[u8]) -> Result<(), DataError> {
    let Some((_, format, python)) = OTHERS.iter().find(|(magic, ..)| first.starts_with(magic)) else {
        return Ok(());
    };
    let new = path.with_extension("parquet");
    let python = python
        .replace("{0}", &path.display().to_string())
        .replace("{1}", &new.display().to_string());
    Err(DataError::OtherFormat {
        path: path.to_owned(),
        format,
        python,
    })
}
