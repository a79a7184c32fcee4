mod answers;
mod endings;
mod replays;
mod rows;
mod signatures;
