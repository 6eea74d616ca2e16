//! The wire format of protobuf, as far as ONNX needs it.

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub fn int(mut self, field: u64, value: i64) -> Self {
        self.varint(field << 3);
        self.varint(value as u64);
        self
    }

    pub fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    pub fn each<T>(self, values: impl IntoIterator<Item = T>, put: impl Fn(Self, T) -> Self) -> Self {
        values.into_iter().fold(self, put)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_numbers_and_strings() {
        // The examples of protobuf's own description: field 1 = 150, field 2 = "testing".
        let message = Message::default().int(1, 150).text(2, "testing");
        assert_eq!(message.into_bytes(), b"\x08\x96\x01\x12\x07testing");
        assert_eq!(Message::default().int(1, -1).into_bytes().len(), 11);
    }
}
