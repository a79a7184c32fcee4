mod answers;
mod endings;
mod guards;
mod replays;
mod rows;
mod signatures;
