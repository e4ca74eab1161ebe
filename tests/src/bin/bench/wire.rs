//! A thin HTTP client on one kept connection: the measured side should have the processor.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// One client's connection.
#[derive(Debug)]
pub struct Wire {
    stream: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl Wire {
    /// Connects as whoever has `token`.
    pub async fn connect(base: &str, token: &str) -> Self {
        let host = base.strip_prefix("http://").unwrap().to_owned();
        let stream = TcpStream::connect(&host).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            host,
            token: token.to_owned(),
        }
    }

    /// POST with an idempotency key; gives status and body.
    pub async fn post_once(&mut self, path: &str, key: &str, body: &str) -> (u16, Vec<u8>) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nidempotency-key: {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        self.stream
            .get_mut()
            .write_all(head.as_bytes())
            .await
            .unwrap();
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        let status = line.split(' ').nth(1).unwrap_or("0").parse().unwrap();
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim().split_once(": ") else {
                break;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().unwrap();
            }
        }
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await.unwrap();
        (status, bytes)
    }
}
