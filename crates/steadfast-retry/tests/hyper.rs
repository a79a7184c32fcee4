//! Over real sockets: hyper-util's client inside, and the failures only it can make.

use std::{convert::Infallible, io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full, channel::Channel};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use steadfast_core::{
    ReplayBody,
    facts::{OperationClass, RetryReport},
};
use steadfast_retry::{
    Backoff, ClassifyError as _, ErrorClass, KnownErrors, RateLimitAwareRetry,
    RateLimitAwareRetryLayer,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use tower::{Layer as _, ServiceExt as _};

type Hyper = Client<HttpConnector, ReplayBody<Full<Bytes>>>;

fn client() -> RateLimitAwareRetry<Hyper> {
    let millisecond = Duration::from_millis(1);
    RateLimitAwareRetryLayer::new()
        .backoff(Backoff::exponential(millisecond, millisecond))
        .buffer_response(1024)
        .layer(Client::builder(TokioExecutor::new()).build_http())
}

fn post(addr: SocketAddr) -> Request<Full<Bytes>> {
    Request::post(format!("http://{addr}/"))
        .extension(OperationClass::NaturallyIdempotent)
        .body(Full::from("0123456789"))
        .unwrap()
}

/// Accepts a connection for each of `answers`, reads a request from it, and writes the answer.
async fn serve(listener: TcpListener, answers: &'static [&'static str]) -> io::Result<Vec<String>> {
    let mut requests = Vec::new();
    for answer in answers {
        let (mut stream, _) = listener.accept().await?;
        requests.push(read_request(&mut stream).await?);
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
    }
    Ok(requests)
}

async fn read_request(stream: &mut TcpStream) -> io::Result<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"0123456789") {
        if stream.read_buf(&mut request).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(String::from_utf8(request).unwrap())
}

#[tokio::test]
async fn a_connection_that_fails_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let error = client().oneshot(post(addr)).await.unwrap_err();
    assert_eq!(KnownErrors.classify_error(&error), ErrorClass::Connect);
    let boxed: tower::BoxError = error.into();
    assert_eq!(KnownErrors.classify_error(&boxed), ErrorClass::Connect);
}

#[tokio::test]
async fn r02_c4_lost_cut_and_refused_answers_are_repeated_byte_for_byte() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(
        listener,
        &[
            "",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhal",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole",
        ],
    ));
    let response = client().oneshot(post(addr)).await.unwrap();
    let report = response.extensions().get::<RetryReport>().unwrap();
    assert_eq!((report.attempts, report.stopped), (3, None));
    assert_eq!(
        response.into_body().collect().await.unwrap().to_bytes(),
        "whole"
    );

    let requests = server.await.unwrap().unwrap();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| *request == requests[0]));
}

/// Reads until `end` has arrived, or the peer has closed.
async fn read_until(stream: &mut TcpStream, end: &[u8]) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    while !read.ends_with(end) && stream.read_buf(&mut read).await? > 0 {}
    Ok(read)
}

#[tokio::test]
async fn c4_an_early_answer_breaks_the_first_upload_off_and_the_second_is_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (second_begun, begun) = oneshot::channel();
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await?;
        read_until(&mut first, b"abc\r\n").await?;
        first
            .write_all(b"HTTP/1.1 503 Early\r\ncontent-length: 0\r\n\r\n")
            .await?;
        let (mut second, _) = listener.accept().await?;
        read_until(&mut second, b"abc\r\n").await?;
        second_begun.send(()).unwrap();
        let rest = read_until(&mut second, b"0\r\n\r\n").await?;
        second
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .await?;
        io::Result::Ok((read_until(&mut first, b"0\r\n\r\n").await?, rest))
    });
    let (mut sender, body) = Channel::<Bytes, Infallible>::new(8);
    let request = Request::post(format!("http://{addr}/"))
        .extension(OperationClass::NaturallyIdempotent)
        .body(body)
        .unwrap();
    let millisecond = Duration::from_millis(1);
    let client = RateLimitAwareRetryLayer::new()
        .backoff(Backoff::exponential(millisecond, millisecond))
        .layer(Client::builder(TokioExecutor::new()).build_http());
    sender.send_data("abc".into()).await.unwrap();
    let call = tokio::spawn(client.oneshot(request));
    begun.await.unwrap();
    sender.send_data("def".into()).await.unwrap();
    drop(sender);

    let response = call.await.unwrap().unwrap();
    let report = response.extensions().get::<RetryReport>().unwrap();
    assert_eq!((response.status().as_u16(), report.attempts), (200, 2));
    let (first, second) = server.await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&first), "");
    assert_eq!(String::from_utf8_lossy(&second), "3\r\ndef\r\n0\r\n\r\n");
}
