//! The suite for [`steadfast_idempotency::Store`].
//!
//! Each property is a function that takes a fresh [`Subject`](subject::Subject) and panics if the store does not have the property.
//! [`idempotency_store!`](crate::idempotency_store) makes a test of each one that every store must have, so that none
//! is forgotten. Those in [`capacity`] are for stores with a limit, and are called by hand.
//!
//! The properties name the requirement (I08 …) or the store invariant they stand for where there is one.

#![expect(
    clippy::missing_panics_doc,
    reason = "every property panics where it does not hold: that is all it does"
)]

pub mod capacity;
pub mod claims;
pub mod expiry;
pub mod model;
pub mod settling;
pub mod subject;

/// Makes a test of each property that every idempotency store must have.
///
/// `store` makes a fresh, empty store; `advance` moves its clock, and it alone may. The attributes are those of each
/// test. A store whose clock cannot be set to the millisecond says with `edge` how near to an instant it can be set.
///
/// ```
/// use steadfast_idempotency::MemoryStore;
///
/// steadfast_testing::idempotency_store! {
///     #[tokio::test(start_paused = true)]
///     store: async || MemoryStore::new(10_000, 1024 * 1024),
///     advance: tokio::time::advance,
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! idempotency_store {
    (
        $(#[$attribute:meta])*
        store: $store:expr,
        advance: $advance:expr,
        $(edge: $edge:expr,)?
    ) => {
        $crate::idempotency_store! {
            @tests
            [$(#[$attribute])*]
            [$crate::conformance::idempotency::subject::Subject::new(($store)().await, $advance)$(.edge($edge))?]
            claims {
                i13_one_of_64_racing_claims_wins,
                i13_one_of_64_racing_takeovers_wins,
                i13_one_of_64_racing_claims_wins_what_has_expired,
                a_claim_is_won_again_by_its_own_token,
                the_lease_counts_from_the_repeat_of_a_claim,
                the_fence_rises_with_each_takeover,
                the_fence_rises_past_release_and_expiry,
                i10_keys_and_tenants_do_not_touch_each_other,
                clones_share_the_records,
            }
            settling {
                i08_an_answer_is_given_back_byte_for_byte,
                a_tombstone_is_given_back,
                a_held_key_is_blocked,
                i12_a_released_key_is_free_at_once,
                i09_the_fingerprint_stays_in_every_state,
                late_steps_of_a_former_owner_change_nothing,
                steps_after_the_last_one_change_nothing,
                steps_without_a_claim_change_nothing,
                an_owner_past_its_lease_settles_until_it_is_taken_over,
            }
            expiry {
                a_lease_is_live_until_its_end_and_free_from_it_on,
                a_renewed_lease_counts_from_the_renewal,
                i11_a_settled_record_lives_for_its_ttl_from_then_on,
                a_short_ttl_is_not_stretched_by_the_lease,
                what_has_expired_is_claimed_as_new,
                purge_keeps_what_has_not_expired,
            }
            model {
                any_steps_agree_with_the_model,
            }
        }
    };
    (@tests $attributes:tt $subject:tt $($module:ident { $($property:ident,)* })*) => {
        $($($crate::idempotency_store! { @test $attributes $subject $module $property })*)*
    };
    (@test [$($attributes:tt)*] [$($subject:tt)*] $module:ident $property:ident) => {
        $($attributes)*
        async fn $property() {
            $crate::conformance::idempotency::$module::$property($($subject)*).await;
        }
    };
}
