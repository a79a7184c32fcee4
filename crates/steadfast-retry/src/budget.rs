use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::origin::{Origin, OriginMap};

/// What retries may cost, by origin, so that a fleet does not turn an outage into a storm (R13).
///
/// Each origin has a bucket of tokens. A retry takes some, a success puts one back; a retry that cannot pay is not made,
/// and the call ends with [`Stopped::Budget`](steadfast_core::facts::Stopped::Budget). A retry that is cancelled before
/// it was sent, or that a layer on this side refuses to send, gives its tokens back.
///
/// An origin with a full bucket takes no memory. At most 1,024 others are kept apart; further ones share one bucket.
///
/// # Clone
///
/// Clones share the tokens: give one budget to several clients of the same servers.
///
/// # Examples
///
/// A program that sends through heavy faults on purpose:
///
/// ```
/// use steadfast_retry::{Budget, RateLimitAwareRetryLayer};
///
/// let budget = Budget::new().tokens(1_000_000);
/// println!("{budget}"); // 1000000 tokens per origin; a retry costs 14, after a 429 that names a time 5
/// let layer = RateLimitAwareRetryLayer::new().retries(12).budget(budget);
/// # let _ = layer;
/// ```
#[derive(Clone)]
pub struct Budget {
    tokens: Limit,
    retry: u32,
    scheduled: u32,
    ledger: Arc<Ledger>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Limit {
    None,
    Tokens(u32),
}

/// Which price a retry has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Price {
    /// After a network failure, a timeout or a failing server.
    Full,
    /// After a 429 that named a time: the server has planned for this request.
    Scheduled,
}

/// What is missing from each bucket. An origin that is not listed has a full one.
#[derive(Default)]
struct Ledger {
    /// Whether anything is missing anywhere: a success need not look further when nothing is.
    in_debt: AtomicBool,
    debts: Mutex<OriginMap<u32>>,
}

impl Budget {
    /// 500 tokens per origin; a retry costs 14, one after a 429 that names a time 5, and a success returns 1.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(Limit::Tokens(500))
    }

    /// No limit. A fleet without one multiplies the load of an outage by its number of attempts.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::with_limit(Limit::None)
    }

    fn with_limit(tokens: Limit) -> Self {
        Self {
            tokens,
            retry: 14,
            scheduled: 5,
            ledger: Arc::default(),
        }
    }

    /// Sets how many tokens an origin has. Default: 500.
    #[must_use]
    pub const fn tokens(mut self, tokens: u32) -> Self {
        self.tokens = Limit::Tokens(tokens);
        self
    }

    /// Sets what a retry costs. Default: 14.
    #[must_use]
    pub const fn retry_cost(mut self, tokens: u32) -> Self {
        self.retry = tokens;
        self
    }

    /// Sets what a retry costs after a 429 that names a time. Default: 5.
    #[must_use]
    pub const fn scheduled_cost(mut self, tokens: u32) -> Self {
        self.scheduled = tokens;
        self
    }

    /// Takes the price of a retry, if the bucket has it.
    pub(crate) fn withdraw(&self, origin: Origin, price: Price) -> Option<Withdrawal> {
        let cost = match price {
            Price::Full => self.retry,
            Price::Scheduled => self.scheduled,
        };
        if let Limit::Tokens(tokens) = self.tokens {
            self.ledger.change(|debts| {
                let debt = debts.entry(&origin, |debt| *debt == 0);
                let charged = charge(*debt, cost, tokens);
                *debt = charged.unwrap_or(*debt);
                if *debt == 0 {
                    debts.remove(&origin);
                }
                charged
            })?;
        }
        Some(Withdrawal {
            ledger: Arc::clone(&self.ledger),
            origin,
            cost: match self.tokens {
                Limit::None => 0,
                Limit::Tokens(_) => cost,
            },
        })
    }

    /// Puts one token back. Whose, is asked only where any are missing.
    pub(crate) fn deposit(&self, origin: impl FnOnce() -> Origin) {
        if self.ledger.in_debt.load(Ordering::Relaxed) {
            self.ledger.pay_back(&origin(), 1);
        }
    }

    /// Gives back what a retry has paid that was not sent after all.
    pub(crate) fn give_back(&self, origin: &Origin, cost: u32) {
        self.ledger.pay_back(origin, cost);
    }

    #[cfg(test)]
    fn debt(&self, origin: &Origin) -> u32 {
        self.ledger.change(|debts| *debts.get_mut(origin))
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tokens {
            Limit::None => f.write_str("unlimited"),
            Limit::Tokens(tokens) => write!(
                f,
                "{tokens} tokens per origin; a retry costs {}, after a 429 that names a time {}",
                self.retry, self.scheduled
            ),
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("tokens", &self.tokens)
            .field("retry", &self.retry)
            .field("scheduled", &self.scheduled)
            .finish_non_exhaustive()
    }
}

/// The new debt, unless the bucket does not hold the cost.
const fn charge(debt: u32, cost: u32, tokens: u32) -> Option<u32> {
    match debt.checked_add(cost) {
        Some(debt) if debt <= tokens => Some(debt),
        _ => None,
    }
}

impl Ledger {
    fn pay_back(&self, origin: &Origin, tokens: u32) {
        if tokens == 0 {
            return;
        }
        self.change(|debts| {
            let debt = debts.get_mut(origin);
            *debt = debt.saturating_sub(tokens);
            if *debt == 0 {
                debts.remove(origin);
            }
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut OriginMap<u32>) -> T) -> T {
        let mut debts = self.debts.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut debts);
        let in_debt = debts.len() > 0 || *debts.rest() > 0;
        self.in_debt.store(in_debt, Ordering::Relaxed);
        result
    }
}

/// The price of a retry that was decided and not sent yet. Dropped unspent, it is given back.
#[must_use]
pub(crate) struct Withdrawal {
    ledger: Arc<Ledger>,
    origin: Origin,
    cost: u32,
}

impl Withdrawal {
    pub(crate) const fn cost(&self) -> u32 {
        self.cost
    }

    /// The retry is sent.
    pub(crate) fn spend(mut self) {
        self.cost = 0;
    }
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.ledger.pay_back(&self.origin, self.cost);
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use proptest::prelude::*;

    use super::*;

    fn origin(host: &str) -> Origin {
        Origin::of(&Request::get(format!("https://{host}/")).body(()).unwrap())
    }

    fn spend(budget: &Budget, origin: &Origin, price: Price) -> bool {
        budget
            .withdraw(origin.clone(), price)
            .map(Withdrawal::spend)
            .is_some()
    }

    #[test]
    fn r13_five_hundred_tokens_pay_for_thirty_five_retries() {
        let (budget, origin) = (Budget::new(), origin("a"));
        let paid = (0..100)
            .filter(|_| spend(&budget, &origin, Price::Full))
            .count();
        assert_eq!(paid, 35);
        assert_eq!(budget.debt(&origin), 490);
        assert!(spend(&budget, &origin, Price::Scheduled));
        assert!(spend(&budget, &origin, Price::Scheduled));
        assert!(!spend(&budget, &origin, Price::Scheduled));
    }

    #[test]
    fn r13_a_success_returns_one_token() {
        let (budget, origin) = (Budget::new().tokens(14), origin("a"));
        assert!(spend(&budget, &origin, Price::Full));
        for _ in 0..13 {
            budget.deposit(|| origin.clone());
            assert!(!spend(&budget, &origin, Price::Full));
        }
        budget.deposit(|| origin.clone());
        assert!(spend(&budget, &origin, Price::Full));
    }

    #[test]
    fn r13_a_success_never_fills_a_bucket_over_its_brim() {
        let (budget, origin) = (Budget::new().tokens(14), origin("a"));
        for _ in 0..100 {
            budget.deposit(|| origin.clone());
        }
        assert!(spend(&budget, &origin, Price::Full));
        assert!(!spend(&budget, &origin, Price::Full));
    }

    #[test]
    fn r13_origins_do_not_pay_for_each_other() {
        let budget = Budget::new().tokens(14);
        assert!(spend(&budget, &origin("a"), Price::Full));
        assert!(spend(&budget, &origin("b"), Price::Full));
        budget.deposit(|| origin("b"));
        assert_eq!(budget.debt(&origin("a")), 14);
        assert_eq!(budget.debt(&origin("b")), 13);
    }

    #[test]
    fn r13_clones_share_their_tokens() {
        let budget = Budget::new().tokens(14);
        let clone = budget.clone();
        assert!(spend(&clone, &origin("a"), Price::Full));
        assert!(!spend(&budget, &origin("a"), Price::Full));
    }

    #[test]
    fn r11_a_retry_that_was_not_sent_gives_its_tokens_back() {
        let (budget, origin) = (Budget::new(), origin("a"));
        let withdrawal = budget.withdraw(origin.clone(), Price::Full).unwrap();
        assert_eq!(budget.debt(&origin), 14);
        drop(withdrawal);
        assert_eq!(budget.debt(&origin), 0);
    }

    #[test]
    fn without_a_limit_every_retry_is_paid_for() {
        let budget = Budget::unlimited();
        assert!((0..10_000).all(|_| spend(&budget, &origin("a"), Price::Full)));
        assert_eq!(budget.debt(&origin("a")), 0);
    }

    #[test]
    fn a_full_bucket_takes_no_memory() {
        let budget = Budget::new();
        drop(budget.withdraw(origin("a"), Price::Full));
        assert_eq!(budget.ledger.change(|debts| debts.len()), 0);
        assert!(!budget.ledger.in_debt.load(Ordering::Relaxed));
    }

    #[test]
    fn a_budget_says_what_it_is() {
        assert_eq!(
            Budget::new().to_string(),
            "500 tokens per origin; a retry costs 14, after a 429 that names a time 5"
        );
        assert_eq!(Budget::unlimited().to_string(), "unlimited");
    }

    proptest! {
        #[test]
        fn r13_a_bucket_is_never_overdrawn(tokens: u32, steps in prop::collection::vec((0_u8..3, 0_u32..100), 0..200)) {
            let (budget, origin) = (Budget::new().tokens(tokens), origin("a"));
            for (step, cost) in steps {
                let budget = budget.clone().retry_cost(cost);
                match step {
                    0 => budget.deposit(|| origin.clone()),
                    1 => drop(budget.withdraw(origin.clone(), Price::Full)),
                    _ => drop(budget.withdraw(origin.clone(), Price::Full).map(Withdrawal::spend)),
                }
                prop_assert!(budget.debt(&origin) <= tokens);
            }
        }
    }
}
