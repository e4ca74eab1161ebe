//! Wallet, top-ups, transactions, earnings.

use actix_web::web::Data;
use actix_web::{HttpResponse, get, post};
use app::context::Once;
use app::wallet::TopUpView;
use web_openapi::money::{Money, Per, Rate};
use web_openapi::page::PageQuery;
use web_openapi::time::to_text;
use web_openapi::wallet::{CreateTopUp, Earnings, TopUp, Transaction, TransactionPage, Wallet};

use super::auth::Auth;
use super::body::Body;
use super::docs::{Problems, Query};
use super::fault::Fault;
use super::once::IdempotencyKey;
use super::{answer, detached, page, view};
use crate::state::Shared;

/// Get the wallet: posted − held = available.
#[utoipa::path(tag = "wallet", security(("bearer" = [])), responses((status = 200, body = Wallet), Problems))]
#[get("/v1/wallet")]
pub(crate) async fn get_wallet(shared: Data<Shared>, auth: Auth) -> Result<HttpResponse, Fault> {
    let found = app::wallet::get(&shared.cx, &auth.0).await?;
    Ok(HttpResponse::Ok().json(view::wallet(&found)))
}

fn top_up_view(v: &TopUpView) -> TopUp {
    TopUp {
        id: v.id.to_string(),
        amount: Money::usd(v.amount),
        status: "succeeded".to_owned(),
        payments: v.wallet.payments.as_str().to_owned(),
        created_at: to_text(v.created_at),
        wallet: view::wallet(&v.wallet),
    }
}

/// Put money into the wallet. In the sandbox it is play money.
#[utoipa::path(tag = "wallet", security(("bearer" = [])), request_body = CreateTopUp,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 201, body = TopUp), Problems))]
#[post("/v1/wallet/top-ups")]
pub(crate) async fn create_top_up(
    shared: Data<Shared>,
    auth: Auth,
    key: IdempotencyKey,
    body: Body<CreateTopUp>,
) -> Result<HttpResponse, Fault> {
    let amount = body
        .value
        .amount
        .parse()
        .map_err(|e| Fault::field("/amount", "malformed", format!("{e}")))?;
    let key = key.on("POST /v1/wallet/top-ups", body.fingerprint);
    detached(async move {
        let once = Once {
            key,
            status: 201,
            render: &|v: &TopUpView| view::json(&top_up_view(v)),
        };
        Ok(answer(
            &app::wallet::top_up(&shared.cx, &auth.0, amount.amount, once).await?,
        ))
    })
    .await
}

/// List everything that moved on the party's accounts, newest first.
#[utoipa::path(tag = "wallet", security(("bearer" = [])), params(PageQuery),
    responses((status = 200, body = TransactionPage), Problems))]
#[get("/v1/transactions")]
pub(crate) async fn list_transactions(
    shared: Data<Shared>,
    auth: Auth,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Fault> {
    let found =
        app::transaction::list(&shared.cx, &auth.0, page::page("transactions", &query.0)?).await?;
    let next_cursor = found.next.map(|id| page::encode("transactions", id));
    let one = |t: &app::transaction::TransactionView| Transaction {
        id: t.id.clone(),
        at: to_text(t.at),
        kind: t.kind.to_owned(),
        account: t.account.to_owned(),
        amount: Money::usd(t.amount),
        cause: t.cause.clone(),
        description: t.description.clone(),
    };
    let body = TransactionPage {
        data: found.rows.iter().map(one).collect(),
        has_more: next_cursor.is_some(),
        next_cursor: next_cursor.clone(),
    };
    Ok(page::reply(
        &body,
        ("/v1/transactions", &query.0),
        next_cursor.as_deref(),
    ))
}

/// Get what the party's machines have earned.
#[utoipa::path(tag = "earnings", security(("bearer" = [])), responses((status = 200, body = Earnings), Problems))]
#[get("/v1/earnings")]
pub(crate) async fn get_earnings(shared: Data<Shared>, auth: Auth) -> Result<HttpResponse, Fault> {
    let v = app::earnings::get(&shared.cx, &auth.0).await?;
    Ok(HttpResponse::Ok().json(Earnings {
        gross: Money::usd(v.gross),
        fee: Money::usd(v.fee),
        net: Money::usd(v.net),
        tax: Money::usd(v.tax),
        maturing: Money::usd(v.maturing),
        reserve: Money::usd(v.reserve),
        payable: Money::usd(v.payable),
        in_flight: Money::usd(v.in_flight),
        paid: Money::usd(v.paid),
        receivable: Money::usd(v.receivable),
        pending: Money::usd(v.pending),
        earning_rate: Rate::usd(v.rate_per_hour, Per::Hour),
        live_leases: v.live_leases,
    }))
}
