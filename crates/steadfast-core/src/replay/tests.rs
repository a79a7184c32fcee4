use http::HeaderMap;
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full, channel::Channel};
use proptest::prelude::*;
use tokio_test::{assert_pending, assert_ready, task};

use super::*;

type Streaming = Channel<Bytes, BoxError>;

async fn send_all<B>(body: ReplayBody<B>) -> Result<http_body_util::Collected<Bytes>, BoxError>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    body.collect().await
}

fn streaming(
    cap: usize,
) -> (
    http_body_util::channel::Sender<Bytes, BoxError>,
    ReplayBody<Streaming>,
) {
    let (sender, channel) = Channel::new(64);
    (sender, ReplayBody::new(channel, cap))
}

fn message(error: &BoxError) -> String {
    error.to_string()
}

#[tokio::test]
async fn c4_every_attempt_sends_the_same_bytes() {
    let bytes = Bytes::from(vec![7; 64 * 1024]);
    let body = ReplayBody::new(Full::new(bytes.clone()), 64 * 1024);
    for _ in 0..3 {
        let attempt = body.clone();
        assert_eq!(attempt.size_hint().exact(), Some(64 * 1024));
        assert_eq!(send_all(attempt).await.unwrap().to_bytes(), bytes);
    }
    assert!(body.is_replayable());
}

#[tokio::test]
async fn c4_trailers_are_sent_again() {
    let trailers = HeaderMap::from_iter([(http::header::ETAG, "1".parse().unwrap())]);
    let (mut sender, body) = streaming(10);
    sender.send_data("abc".into()).await.unwrap();
    sender.send_trailers(trailers.clone()).await.unwrap();
    drop(sender);
    for _ in 0..2 {
        let sent = send_all(body.clone()).await.unwrap();
        assert_eq!(sent.trailers(), Some(&trailers));
        assert_eq!(sent.to_bytes(), "abc");
    }
}

#[tokio::test]
async fn an_attempt_that_broke_off_is_continued_by_the_next() {
    let (mut sender, body) = streaming(1024);
    sender.send_data("one ".into()).await.unwrap();
    let mut first = body.clone();
    assert_eq!(
        first.frame().await.unwrap().unwrap().into_data().unwrap(),
        "one "
    );
    drop(first);
    sender.send_data("two ".into()).await.unwrap();
    sender
        .send_data(Bytes::from(vec![b'x'; 600]))
        .await
        .unwrap();
    drop(sender);
    let sent = send_all(body.clone()).await.unwrap().to_bytes();
    assert_eq!(&sent[..8], b"one two ");
    assert_eq!(sent.len(), 608);
    assert_eq!(send_all(body).await.unwrap().to_bytes(), sent);
}

#[tokio::test]
async fn over_the_cap_the_attempt_goes_on_and_the_repeat_is_given_up() {
    let (mut sender, body) = streaming(4);
    sender.send_data("abc".into()).await.unwrap();
    sender.send_data("def".into()).await.unwrap();
    drop(sender);
    let retry = body.clone();
    assert!(body.is_replayable());
    assert_eq!(send_all(body).await.unwrap().to_bytes(), "abcdef");
    assert!(!retry.is_replayable());
    let error = send_all(retry).await.unwrap_err();
    assert_eq!(message(&error), "the request body cannot be sent again");
}

#[tokio::test]
async fn an_announced_length_over_the_cap_is_not_kept() {
    let body = ReplayBody::new(Full::new(Bytes::from("abcd")), 3);
    assert!(!body.is_replayable());
    let retry = body.clone();
    assert_eq!(send_all(body).await.unwrap().to_bytes(), "abcd");
    send_all(retry).await.unwrap_err();
}

#[test]
fn a_newer_attempt_breaks_an_older_one_off() {
    let (mut sender, body) = streaming(1024);
    let mut older = task::spawn(body.clone());
    assert_pending!(older.enter(|cx, body| body.poll_frame(cx)));
    let mut newer = task::spawn(body);
    assert_pending!(newer.enter(|cx, body| body.poll_frame(cx)));
    assert!(older.is_woken());
    sender.try_send(Frame::data("abc".into())).unwrap();
    assert!(newer.is_woken());
    let error = assert_ready!(older.enter(|cx, body| body.poll_frame(cx)))
        .unwrap()
        .unwrap_err();
    assert_eq!(message(&error), "a newer attempt sends this request body");
    let frame = assert_ready!(newer.enter(|cx, body| body.poll_frame(cx)))
        .unwrap()
        .unwrap();
    assert_eq!(frame.into_data().unwrap(), "abc");
}

#[tokio::test]
async fn a_body_that_failed_cannot_be_sent_again() {
    let (sender, body) = streaming(1024);
    sender.abort("disk".into());
    let retry = body.clone();
    assert_eq!(message(&send_all(body).await.unwrap_err()), "disk");
    assert!(!retry.is_replayable());
    send_all(retry).await.unwrap_err();
}

#[tokio::test]
async fn once_means_once() {
    let body = ReplayBody::once(Full::new(Bytes::from("abc")));
    let retry = body.clone();
    assert!(!body.is_replayable());
    assert_eq!(send_all(body).await.unwrap().to_bytes(), "abc");
    let error = send_all(retry).await.unwrap_err();
    assert_eq!(message(&error), "the request body cannot be sent again");
}

#[tokio::test]
async fn nothing_can_be_sent_any_number_of_times() {
    let body = ReplayBody::new(http_body_util::Empty::<Bytes>::new(), 0);
    assert!(body.is_end_stream());
    assert!(body.is_replayable());
    assert!(send_all(body.clone()).await.unwrap().to_bytes().is_empty());
    assert!(send_all(body).await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn the_size_shrinks_as_the_body_is_sent() {
    let mut body = ReplayBody::new(Full::new(Bytes::from("abc")), 3);
    assert!(!body.is_end_stream());
    body.frame().await.unwrap().unwrap();
    assert!(body.is_end_stream());
    assert_eq!(body.size_hint().exact(), Some(0));
}

proptest! {
    /// However a body is framed, and wherever attempts break off, the next attempt sends all of it.
    #[test]
    fn c4_any_framing_and_any_breaks_repeat_byte_for_byte(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..1200), 0..12),
        breaks in prop::collection::vec(0_usize..12, 0..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut sender, body) = streaming(usize::MAX);
            let expected = chunks.concat();
            for chunk in chunks {
                sender.send_data(chunk.into()).await.unwrap();
            }
            drop(sender);
            for frames in breaks {
                let mut attempt = body.clone();
                let mut sent = Vec::new();
                for _ in 0..frames {
                    let Some(frame) = attempt.frame().await else { break };
                    sent.extend_from_slice(&frame.unwrap().into_data().unwrap());
                }
                assert!(expected.starts_with(&sent));
            }
            assert_eq!(send_all(body.clone()).await.unwrap().to_bytes(), expected);
            assert_eq!(send_all(body).await.unwrap().to_bytes(), expected);
        });
    }
}

#[tokio::test]
async fn c4_an_attempt_begun_again_sends_no_byte_twice() {
    for size in [3, 600] {
        let (mut sender, body) = streaming(4096);
        let frames = [Bytes::from(vec![b'a'; size]), Bytes::from(vec![b'b'; size])];
        let mut attempt = body.clone();
        assert!(attempt.begin());
        sender.send_data(frames[0].clone()).await.unwrap();
        let first = attempt.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), frames[0]);

        assert!(attempt.begin());
        sender.send_data(frames[1].clone()).await.unwrap();
        drop(sender);
        assert_eq!(send_all(attempt).await.unwrap().to_bytes(), frames[1]);
    }
}

#[tokio::test]
async fn an_attempt_that_was_superseded_cannot_begin_again() {
    let (mut sender, body) = streaming(4096);
    sender.send_data("abc".into()).await.unwrap();
    drop(sender);
    let (mut old, mut new) = (body.clone(), body.clone());
    assert!(old.frame().await.unwrap().is_ok());
    assert!(new.begin());
    assert!(!old.begin());
    assert_eq!(send_all(new).await.unwrap().to_bytes(), "abc");
}
