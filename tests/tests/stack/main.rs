//! Both sides' layers around real clients and servers, over real sockets and a network that breaks.

mod lossy;
mod order;
mod shop;
mod signed;
