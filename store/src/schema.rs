//! The tables as diesel sees them; `tests/schema.rs` compares them with the database.

diesel::table! {
    account (id) {
        id -> BigInt,
        ledger -> Integer,
        code -> SmallInt,
        owner -> Uuid,
        constrained -> Bool,
        debits -> BigInt,
        credits -> BigInt,
        debits_pending -> BigInt,
        credits_pending -> BigInt,
        stripe -> SmallInt,
        version -> BigInt,
    }
}

diesel::table! {
    adjustment (id) {
        id -> Uuid,
        party_id -> Uuid,
        ledger -> Integer,
        direction -> Text,
        account -> SmallInt,
        bearer -> SmallInt,
        amount -> BigInt,
        reason -> Text,
        needs_approval -> Bool,
        state -> Text,
        proposed_by -> Uuid,
        proposed_at -> Timestamptz,
        expires_at -> Timestamptz,
        decided_by -> Nullable<Uuid>,
        decided_at -> Nullable<Timestamptz>,
        decision_reason -> Nullable<Text>,
    }
}

diesel::table! {
    api_key (id) {
        id -> Uuid,
        party_id -> Uuid,
        user_id -> Uuid,
        name -> Text,
        prefix -> Text,
        secret_hash -> Bytea,
        scopes -> Array<Text>,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        last_used_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    app_user (id) {
        id -> Uuid,
        email -> Text,
        password_hash -> Text,
        staff_role -> Nullable<Text>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    audit_event (id) {
        id -> Uuid,
        at -> Timestamptz,
        party_id -> Nullable<Uuid>,
        actor_kind -> Text,
        actor_id -> Text,
        action -> Text,
        object -> Text,
        reason -> Text,
        request_id -> Nullable<Text>,
        recorded_at -> Timestamptz,
    }
}

diesel::table! {
    batch (id) {
        id -> BigInt,
        shard -> SmallInt,
        no -> BigInt,
        epoch -> BigInt,
        rows -> Integer,
        prev_hash -> Bytea,
        hash -> Bytea,
        sealed_at -> Timestamptz,
    }
}

diesel::table! {
    billing_profile (party_id) {
        party_id -> Uuid,
        legal_name -> Text,
        address -> Array<Text>,
        country -> Nullable<Text>,
        vat_id -> Nullable<Text>,
        version -> BigInt,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    book_change (id) {
        id -> BigInt,
        xid -> BigInt,
        machine_id -> Uuid,
        at -> Timestamptz,
    }
}

diesel::table! {
    book_floor (one) {
        one -> Bool,
        xid -> BigInt,
    }
}

diesel::table! {
    budget (id) {
        id -> Uuid,
        party_id -> Uuid,
        scope -> Text,
        member_id -> Nullable<Uuid>,
        label -> Nullable<Text>,
        lease_id -> Nullable<Uuid>,
        period -> Text,
        ledger -> Integer,
        amount -> BigInt,
        alerts -> Jsonb,
        action -> Text,
        version -> BigInt,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        removed_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    budget_alert (budget_id, version, period_from, percent) {
        budget_id -> Uuid,
        version -> BigInt,
        period_from -> Timestamptz,
        percent -> Integer,
        spent -> BigInt,
        amount -> BigInt,
        at -> Timestamptz,
    }
}

diesel::table! {
    charge (id) {
        id -> Uuid,
        meter_id -> Uuid,
        lease_id -> Uuid,
        hold_id -> Uuid,
        seq -> BigInt,
        from_at -> Timestamptz,
        to_at -> Timestamptz,
        billable_ms -> BigInt,
        ledger -> Integer,
        gross -> BigInt,
        fee -> BigInt,
        tax -> BigInt,
        wallet -> BigInt,
        earned -> BigInt,
        fee_account -> BigInt,
        tax_account -> BigInt,
        at -> Timestamptz,
        batch -> Nullable<BigInt>,
        segment -> BigInt,
    }
}

diesel::table! {
    credit (id) {
        id -> Uuid,
        party_id -> Uuid,
        kind -> Text,
        ledger -> Integer,
        amount -> BigInt,
        remaining -> BigInt,
        reason -> Text,
        lease_id -> Nullable<Uuid>,
        expires_at -> Nullable<Timestamptz>,
        granted_by -> Uuid,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    credit_use (id) {
        id -> Uuid,
        credit_id -> Uuid,
        kind -> Text,
        hold_id -> Nullable<Uuid>,
        amount -> BigInt,
        at -> Timestamptz,
    }
}

diesel::table! {
    dispute (id) {
        id -> Uuid,
        party_id -> Uuid,
        ledger -> Integer,
        payments -> Text,
        taken -> BigInt,
        owed -> BigInt,
        reason -> Text,
        state -> Text,
        opened_at -> Timestamptz,
        decided_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    enrollment (id) {
        id -> Uuid,
        party_id -> Uuid,
        token_hash -> Bytea,
        machine_name -> Text,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        machine_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    gpu (id) {
        id -> Uuid,
        machine_id -> Uuid,
        slot -> SmallInt,
        uuid -> Text,
        model -> Text,
        memory_mib -> Integer,
        island -> SmallInt,
        busy_elsewhere -> Bool,
        retired_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    gpu_model (slug) {
        slug -> Text,
        name -> Text,
        vendor -> Text,
        memory_mib -> Integer,
    }
}

diesel::table! {
    hold (id) {
        id -> Uuid,
        account -> BigInt,
        lease_id -> Uuid,
        amount -> BigInt,
        posted -> BigInt,
        state -> Text,
        opened_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        due_at -> Nullable<Timestamptz>,
        short -> Bool,
        warned -> SmallInt,
    }
}

diesel::table! {
    idempotency (party_id, route, key) {
        party_id -> Uuid,
        route -> Text,
        key -> Text,
        fingerprint -> Bytea,
        status -> SmallInt,
        body -> Json,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    invoice (id) {
        id -> Uuid,
        party_id -> Uuid,
        kind -> Text,
        series -> Text,
        year -> Integer,
        no -> BigInt,
        period_from -> Timestamptz,
        period_to -> Timestamptz,
        monthly -> Bool,
        ledger -> Integer,
        gross -> BigInt,
        fee -> BigInt,
        tax -> BigInt,
        total -> BigInt,
        document -> Jsonb,
        issued_at -> Timestamptz,
        refers_to -> Nullable<Uuid>,
        credited_before -> Nullable<BigInt>,
        credited_of -> Nullable<BigInt>,
        reason -> Nullable<Text>,
        transfer_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    invoice_line (invoice_id, position) {
        invoice_id -> Uuid,
        position -> Integer,
        side -> Text,
        lease_id -> Uuid,
        meter_id -> Uuid,
        seq_from -> BigInt,
        seq_to -> BigInt,
        from_at -> Timestamptz,
        to_at -> Timestamptz,
        billable_ms -> BigInt,
        gross -> BigInt,
        fee -> BigInt,
        tax -> BigInt,
        resource -> Text,
        price -> BigInt,
        per_ms -> BigInt,
        fee_bps -> Integer,
        tax_bps -> Integer,
        gpu_model -> Text,
        gpu_count -> SmallInt,
        disk_gib -> Integer,
        simulated -> Bool,
        label -> Nullable<Text>,
    }
}

diesel::table! {
    invoice_series (series, year) {
        series -> Text,
        year -> Integer,
        last -> BigInt,
    }
}

diesel::table! {
    lease (id) {
        id -> Uuid,
        quote_id -> Uuid,
        party_id -> Uuid,
        provider_id -> Uuid,
        offer_id -> Uuid,
        machine_id -> Uuid,
        workload -> Jsonb,
        placement -> Jsonb,
        label -> Nullable<Text>,
        max_spend -> Nullable<BigInt>,
        end_at -> Nullable<Timestamptz>,
        state -> Text,
        state_reason -> Text,
        state_detail -> Text,
        state_at -> Timestamptz,
        progress -> BigInt,
        progress_at -> Timestamptz,
        start_no -> BigInt,
        version -> BigInt,
        created_at -> Timestamptz,
        started_at -> Nullable<Timestamptz>,
        end_requested_at -> Nullable<Timestamptz>,
        ended_at -> Nullable<Timestamptz>,
        container_id -> Nullable<Text>,
        container_started_at -> Nullable<Text>,
        compute_meter -> Uuid,
        storage_meter -> Uuid,
        disk_gib -> Integer,
        booked_by -> Nullable<Uuid>,
        keeps_gpus -> Bool,
    }
}

diesel::table! {
    lease_event (id) {
        id -> Uuid,
        lease_id -> Uuid,
        at -> Timestamptz,
        from_state -> Nullable<Text>,
        to_state -> Text,
        reason -> Text,
        detail -> Text,
        actor_kind -> Text,
        actor_id -> Text,
    }
}

diesel::table! {
    lease_gpu (lease_id, gpu_id, held_at) {
        lease_id -> Uuid,
        gpu_id -> Uuid,
        held_at -> Timestamptz,
        released_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    ledger_day (day) {
        day -> Text,
        heads -> Jsonb,
        root -> Bytea,
        public_key -> Bytea,
        signature -> Bytea,
        signed_at -> Timestamptz,
    }
}

diesel::table! {
    machine (id) {
        id -> Uuid,
        party_id -> Uuid,
        name -> Text,
        state -> Text,
        state_reason -> Text,
        listed_before -> Bool,
        public_key -> Bytea,
        simulated -> Bool,
        hostname -> Text,
        cpu_cores -> Integer,
        ram_mib -> BigInt,
        disk_gib -> BigInt,
        country -> Nullable<Text>,
        driver_version -> Nullable<Text>,
        cuda_version -> Nullable<Text>,
        engine -> Text,
        agent_version -> Text,
        last_seen_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
        version -> BigInt,
    }
}

diesel::table! {
    maturing (id) {
        id -> Uuid,
        party_id -> Uuid,
        ledger -> Integer,
        through -> Timestamptz,
        amount -> BigInt,
        reserve -> BigInt,
        reserve_due_at -> Timestamptz,
        reserve_released_at -> Nullable<Timestamptz>,
        at -> Timestamptz,
    }
}

diesel::table! {
    membership (user_id, party_id) {
        user_id -> Uuid,
        party_id -> Uuid,
        role -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    meter (id) {
        id -> Uuid,
        lease_id -> Uuid,
        resource -> Text,
        price -> BigInt,
        per_ms -> BigInt,
        fee_bps -> Integer,
        tax_bps -> Integer,
        opened_at -> Timestamptz,
        until -> Nullable<Timestamptz>,
        closed -> Bool,
        billable_ms -> BigInt,
        through -> Timestamptz,
        charged -> BigInt,
        fee -> BigInt,
        tax -> BigInt,
        seq -> BigInt,
        settled_ms -> BigInt,
        settled_through -> Timestamptz,
        proof_boot -> Nullable<Text>,
        proof_run -> Nullable<Text>,
        proof_mono_ms -> Nullable<BigInt>,
        proof_at -> Nullable<Timestamptz>,
        segment -> BigInt,
        segments -> BigInt,
        rem_num -> BigInt,
        skew_ms -> BigInt,
    }
}

diesel::table! {
    meter_segment (meter_id, no) {
        meter_id -> Uuid,
        no -> BigInt,
        from_at -> Timestamptz,
        price -> BigInt,
    }
}

diesel::table! {
    offer (id) {
        id -> Uuid,
        party_id -> Uuid,
        machine_id -> Uuid,
        version -> BigInt,
        ledger -> Integer,
        gpu_hour -> BigInt,
        bid_floor -> Nullable<BigInt>,
        storage_gib_month -> BigInt,
        min_gpus -> SmallInt,
        max_gpus -> SmallInt,
        state -> Text,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        keep_gpu_hour -> Nullable<BigInt>,
    }
}

diesel::table! {
    outbox (seq) {
        seq -> BigInt,
        topic -> Text,
        key -> Text,
        payload -> Jsonb,
        at -> Timestamptz,
        delivered_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    party (id) {
        id -> Uuid,
        name -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    party_event (id) {
        id -> Uuid,
        party_id -> Uuid,
        at -> Timestamptz,
        kind -> Text,
        object -> Text,
        detail -> Text,
        data -> Jsonb,
    }
}

diesel::table! {
    payout (id) {
        id -> Uuid,
        party_id -> Uuid,
        ledger -> Integer,
        amount -> BigInt,
        payments -> Text,
        state -> Text,
        state_reason -> Text,
        requested_at -> Timestamptz,
        state_at -> Timestamptz,
    }
}

diesel::table! {
    quote (id) {
        id -> Uuid,
        party_id -> Uuid,
        offer_id -> Uuid,
        offer_version -> BigInt,
        gpu_model -> Text,
        gpu_count -> SmallInt,
        disk_gib -> Integer,
        duration_seconds -> Integer,
        ledger -> Integer,
        gpu_hour -> BigInt,
        storage_gib_month -> BigInt,
        fee_bps -> Integer,
        tax_bps -> Integer,
        simulated -> Bool,
        signature -> Bytea,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        keep_gpu_hour -> BigInt,
    }
}

diesel::table! {
    top_up (id) {
        id -> Uuid,
        party_id -> Uuid,
        ledger -> Integer,
        amount -> BigInt,
        payments -> Text,
        transfer_id -> Uuid,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    transfer (id) {
        id -> Uuid,
        kind -> SmallInt,
        ledger -> Integer,
        debit -> BigInt,
        credit -> BigInt,
        amount -> BigInt,
        cause -> Uuid,
        at -> Timestamptz,
        batch -> Nullable<BigInt>,
    }
}

diesel::table! {
    wallet_watch (party_id, ledger) {
        party_id -> Uuid,
        ledger -> Integer,
        due_at -> Nullable<Timestamptz>,
        runs_out_at -> Nullable<Timestamptz>,
        warned -> SmallInt,
    }
}

diesel::table! {
    writer (shard) {
        shard -> SmallInt,
        epoch -> BigInt,
        node -> Nullable<Text>,
        lease_until -> Nullable<Timestamptz>,
        stopped -> Nullable<Text>,
        batch_no -> BigInt,
        head -> Bytea,
    }
}

diesel::joinable!(billing_profile -> party (party_id));
diesel::joinable!(membership -> app_user (user_id));
diesel::joinable!(lease -> quote (quote_id));
diesel::joinable!(lease_gpu -> gpu (gpu_id));
diesel::joinable!(meter_segment -> meter (meter_id));
diesel::joinable!(lease_event -> lease (lease_id));

diesel::allow_tables_to_appear_in_same_query!(
    account,
    adjustment,
    api_key,
    app_user,
    audit_event,
    batch,
    billing_profile,
    book_change,
    book_floor,
    budget,
    budget_alert,
    charge,
    credit,
    credit_use,
    dispute,
    enrollment,
    gpu,
    gpu_model,
    hold,
    idempotency,
    invoice,
    invoice_line,
    invoice_series,
    lease,
    lease_event,
    lease_gpu,
    ledger_day,
    machine,
    maturing,
    membership,
    meter,
    meter_segment,
    offer,
    outbox,
    party,
    party_event,
    payout,
    quote,
    top_up,
    transfer,
    wallet_watch,
    writer,
);
