// What the registry takes and answers, as types: made from its OpenAPI document by `npm run map`, which a test holds. Whatever
// is wrong here is wrong there. `Schemas` are its components, `Operations` its paths with their methods.

export interface Schemas {
  /** A rule that says that requests to a path cost money. */
  Route: {
    id: string;
    /** A path of literal segments, `:name` or `{name}` for one segment, and `/*` at the end for everything below. */
    route_pattern: string;
    /** An HTTP method, or `*` for any. Upper-cased when stored. */
    method: string;
    /** The price of one request: a decimal written as a string, greater than 0. */
    amount: string;
    /** A currency code. Upper-cased when stored. */
    currency: string;
    name: string | null;
    description: string | null;
    /** A paused route costs nothing. */
    status: 'active' | 'paused';
    allow_anonymous: boolean;
    source: string | null;
    receiver_config_id: string | null;
    plan_id: string | null;
    created_at: string;
    updated_at: string;
  };
  /** Members that are not known are ignored. */
  RouteRegistration: {
    /** A path of literal segments, `:name` or `{name}` for one segment, and `/*` at the end for everything below. */
    route_pattern: string;
    /** An HTTP method, or `*` for any. Upper-cased when stored. */
    method: string;
    /** The price of one request: a decimal written as a string, greater than 0. */
    amount: string;
    /** A currency code. Upper-cased when stored. Left out: "USD". */
    currency?: string;
    /** Left out: null. */
    name?: string | null;
    /** Left out: null. */
    description?: string | null;
    /** A paused route costs nothing. Left out: "active". */
    status?: 'active' | 'paused';
    /** Left out: true. */
    allow_anonymous?: boolean;
    /** Left out: null. */
    receiver_config_id?: string | null;
    /** Left out: "sdk". */
    source?: string | null;
  };
  RouteCreation: {
    /** A path of literal segments, `:name` or `{name}` for one segment, and `/*` at the end for everything below. */
    route_pattern: string;
    /** An HTTP method, or `*` for any. Upper-cased when stored. */
    method: string;
    /** The price of one request: a decimal written as a string, greater than 0. */
    amount: string;
    /** A currency code. Upper-cased when stored. Left out: "USD". */
    currency?: string;
    /** Left out: null. */
    name?: string | null;
    /** Left out: null. */
    description?: string | null;
    /** A paused route costs nothing. Left out: "active". */
    status?: 'active' | 'paused';
    /** Left out: true. */
    allow_anonymous?: boolean;
    /** Left out: null. */
    receiver_config_id?: string | null;
    /** Left out: null. */
    plan_id?: string | null;
    /** Left out: "dashboard". */
    source?: string | null;
  };
  /** A JSON merge patch (RFC 7396). */
  RoutePatch: {
    /** A path of literal segments, `:name` or `{name}` for one segment, and `/*` at the end for everything below. */
    route_pattern?: string;
    /** An HTTP method, or `*` for any. Upper-cased when stored. */
    method?: string;
    /** The price of one request: a decimal written as a string, greater than 0. */
    amount?: string;
    /** A currency code. Upper-cased when stored. */
    currency?: string;
    name?: string | null;
    description?: string | null;
    /** A paused route costs nothing. */
    status?: 'active' | 'paused';
    allow_anonymous?: boolean;
    receiver_config_id?: string | null;
    plan_id?: string | null;
  };
  RouteList: {
    data: Schemas['Route'][];
    next_cursor: string | null;
  };
  /** Who changed a route, when, from what and to what. `by` is the subject of a dashboard token, the name of an API key, or `config`. */
  RouteChanges: {
    data: {
      at: string;
      by: string;
      before: Schemas['Route'] | null;
      after: Schemas['Route'] | null;
    }[];
    next_cursor: string | null;
  };
  Match: {
    matched: boolean;
    payment_required: boolean;
    ambiguous?: true;
    route: Schemas['Route'] | null;
    params: Record<string, string>;
  };
  Health: {
    status: 'ok';
    version: string;
    timestamp: string;
  };
  /** RFC 9457. `code` is stable; `detail` is for people. */
  Problem: {
    type: string;
    title: string;
    status: number;
    detail: string;
    code: 'target_ambiguous' | 'request_malformed' | 'target_too_long' | 'headers_too_large' | 'request_timeout' | 'expectation_failed' | 'method_unsupported' | 'coding_unsupported' | 'method_not_declared' | 'http_version_unsupported' | 'customer_required' | 'price_ambiguous' | 'length_required' | 'payment_malformed' | 'pass_malformed' | 'payment_in_use' | 'already_paid' | 'too_many_challenges' | 'too_many_payments' | 'too_many_unsettled' | 'too_many_passes' | 'pass_in_use' | 'idempotency_conflict' | 'receiver_unknown' | 'price_unpayable' | 'facilitator_unavailable' | 'settlement_unknown' | 'ledger_unavailable' | 'plan_unknown' | 'plan_unanswerable' | 'price_unavailable' | 'customers_unavailable' | 'routes_absent' | 'too_many_requests_in_flight' | 'upstream_unreachable' | 'upstream_timeout' | 'peer_untrusted' | 'question_malformed' | 'target_not_canonical' | 'header_refused' | 'preflight_unanswerable' | 'upstream_failed' | 'malformed' | 'credentials_missing' | 'credentials_invalid' | 'host_refused' | 'origin_refused' | 'scope_insufficient' | 'not_found' | 'webhook_unknown' | 'method_not_allowed' | 'too_many_keys' | 'duplicate' | 'refund_exceeds' | 'refund_unproven' | 'chain_unavailable' | 'price_lowered' | 'precondition_failed' | 'body_too_large' | 'media_type_unsupported' | 'invalid' | 'too_many_requests' | 'registry_unavailable' | 'internal';
    errors?: {
      pointer: string;
      detail: string;
    }[];
    existing_id?: string;
    sign_in?: string[];
  };
  /** One price taken once. */
  Charge: {
    id: string;
    status: 'claimed' | 'settling' | 'settled' | 'delivered' | 'released' | 'failed';
    claims: number;
    settle_attempts: number;
    reason: string | null;
    failed_by: 'operator' | 'chain' | 'refusal' | null;
    created_at: string;
    updated_at: string;
    next_look_at: string | null;
    settled_at: string | null;
    delivered_at: string | null;
    partial: boolean;
    undelivered: 'answer_lost' | 'answer_dropped' | 'upstream_failed' | 'upload_broken_off' | 'process_died' | null;
    next_ask_at: string | null;
    /** Left out: null. */
    failed_status?: number | null;
    refunded_at: string | null;
    refund_note: string | null;
    route_id: string;
    route_method: string;
    route_pattern: string;
    method: string;
    path: string;
    request_id: string | null;
    amount: string;
    currency: string;
    customer_id: string | null;
    /** Left out: null. */
    asker?: string | null;
    payer: string;
    payer_url: string | null;
    receiver_id: string;
    network: string;
    network_name: string | null;
    asset: string;
    asset_decimals: number;
    amount_atomic: string;
    scheme: string;
    pay_to_address: string;
    nonce: string;
    x402_version: 1 | 2;
    flow: 'authorization' | 'upfront';
    settle: 'before_response' | 'before_forward';
    transaction: string | null;
    transaction_url: string | null;
    log_index: number | null;
    asked: number;
    charged: true | false | 'unknown';
    retry_until: string | null;
    owed: 'upstream' | 'tollgate' | 'client' | null;
    refunded: {
      amount: string;
      transactions: string[];
    } | null;
    refunds: {
      transaction: string;
      transaction_url: string | null;
      log_index: number | null;
      proven: boolean;
      amount: string;
      amount_atomic: string;
      reason: string | null;
      recorded_at: string;
    }[];
    pass_id: string | null;
  };
  ChargeList: {
    data: Schemas['Charge'][];
    next_cursor: string | null;
  };
  /** What happened to a charge. */
  ChargeHistory: {
    data: {
      at: string;
      state: 'claimed' | 'settling' | 'settled' | 'delivered' | 'released' | 'failed';
      event: string;
      by: string | null;
      detail: string | null;
    }[];
  };
  /** Charges that were settled, with whole hours as the smallest step. */
  Summary: {
    from: string;
    to: string;
    bucket: 'hour' | 'day' | 'month' | 'total';
    data: {
      start: string;
      route_id: string | null;
      currency: string;
      network: string;
      asset: string;
      asset_decimals: number;
      charges: number;
      amount: string;
      amount_atomic: string;
      refunded: string;
      refunded_atomic: string;
    }[];
  };
  RefundRequest: {
    transaction: string;
    amount?: string;
    reason?: string;
    unproven?: boolean;
  };
  LedgerClaimRequest: {
    charge_id: string;
    payment: {
      network: string;
      asset: string;
      payer: string;
      unique: string;
    };
    credential_sha256: string;
    x402_version: 1 | 2;
    way: {
      receiver_id: string;
      network: string;
      scheme: string;
      asset: string;
      asset_decimals: number;
      pay_to_address: string;
      max_timeout_seconds: number;
      terms: Record<string, string>;
    };
    amount: string;
    deadline: string | null;
    route: {
      id: string;
      method: string;
      pattern: string;
    };
    request: {
      method: string;
      path: string;
      target_sha256: string;
    };
    request_id: string | null;
    price: {
      amount: string;
      currency: string;
    };
    customer_id: string | null;
    /** Left out: null. */
    asker?: string | null;
    /** Left out: null. */
    ask_sha256?: string | null;
    /** Left out: null. */
    pass?: Record<string, string> | null;
    settle: 'before_response' | 'before_forward';
    credential: string;
    owner: string;
    lease_ms: number;
    max_unsettled_per_payer: number;
    change_id?: string;
  };
  LedgerChangeRequest: {
    event: Schemas['LedgerChange'];
    owner: string;
    change_id?: string;
  };
  /** A charge with everything that a restart needs. Secret. */
  LedgerClaim: {
    charge_id: string;
    payment: {
      network: string;
      asset: string;
      payer: string;
      unique: string;
    };
    credential_sha256: string;
    x402_version: 1 | 2;
    way: {
      receiver_id: string;
      network: string;
      scheme: string;
      asset: string;
      asset_decimals: number;
      pay_to_address: string;
      max_timeout_seconds: number;
      terms: Record<string, string>;
    };
    amount: string;
    deadline: string | null;
    route: {
      id: string;
      method: string;
      pattern: string;
    };
    request: {
      method: string;
      path: string;
      target_sha256: string;
    };
    request_id: string | null;
    price: {
      amount: string;
      currency: string;
    };
    customer_id: string | null;
    /** Left out: null. */
    asker?: string | null;
    /** Left out: null. */
    ask_sha256?: string | null;
    /** Left out: null. */
    pass?: Record<string, string> | null;
    settle: 'before_response' | 'before_forward';
    state: 'claimed' | 'settling' | 'settled' | 'delivered' | 'released' | 'failed';
    owner: string | null;
    lease_until: number;
    claims: number;
    claimed_at: number;
    attempts: number;
    via: string | null;
    looks: number;
    reason: string | null;
    failed_by: 'operator' | 'chain' | 'refusal' | null;
    created_at: number;
    updated_at: number;
    look_at: number | null;
    settled_at: number | null;
    delivered_at: number | null;
    head_sent: boolean;
    partial: boolean;
    undelivered: 'answer_lost' | 'answer_dropped' | 'upstream_failed' | 'upload_broken_off' | 'process_died' | null;
    /** Left out: null. */
    ask_at?: number | null;
    /** Left out: null. */
    failed_status?: number | null;
    /** Left out: null. */
    repeats?: number | null;
    change_id: string | null;
    refunded_at: number | null;
    refund_note: string | null;
    /** Left out: null. */
    refunds?: string | null;
    credential: string | null;
    search: Record<string, string> | null;
    /** Left out: null. */
    events?: string | null;
    proof: {
      transaction: string;
      log_index: number | null;
      amount: string;
      payer: string;
    } | null;
    asks: {
      all: number;
      after_lost_answer: number;
      after_failure: number;
      after_upload: number;
      after_death: number;
    };
    answer: {
      status: number;
      headers: string[];
      body: string;
    } | null;
  };
  LedgerChange: {
    kind: 'settle_started';
    via: string;
    lease_ms: number;
  } | {
    kind: 'not_carried_out';
    reason: string;
    unasked?: true;
  } | {
    kind: 'settled';
    proof: {
      transaction: string;
      log_index: number | null;
      amount: string;
      payer: string;
    };
    lease_ms: number;
  } | {
    kind: 'settle_refused';
    reason: string;
  } | {
    kind: 'settle_unknown';
    reason: string;
    look_in_ms: number;
    search?: Record<string, string> | null;
  } | {
    kind: 'looked';
    at: 'start' | 'end';
    search: Record<string, string> | null;
    look_in_ms: number;
    reason: string;
  } | {
    kind: 'failed';
    by: 'chain';
    reason: string;
  } | {
    kind: 'released';
    reason: string;
    unasked?: true;
  } | {
    kind: 'taken_over';
    lease_ms: number;
  } | {
    kind: 'delivered';
    partial: boolean;
  } | {
    kind: 'answer_kept';
    answer: {
      status: number;
      headers: string[];
      body: string;
    };
    head_sent: boolean;
  } | {
    kind: 'undelivered';
    because: 'answer_lost' | 'answer_dropped' | 'upstream_failed' | 'upload_broken_off' | 'not_asked';
    head_sent: boolean;
    status?: number;
  } | {
    kind: 'redeem_started';
    request: {
      credential_sha256: string;
      method: string;
      target_sha256: string;
      asker?: {
        dialect: string;
        ask_sha256: string | null;
        route_id: string;
        repeat_window_ms: number;
      };
    };
    lease_ms: number;
  } | {
    kind: 'allow_repeated';
    request: {
      credential_sha256: string;
      method: string;
      target_sha256: string;
      asker?: {
        dialect: string;
        ask_sha256: string | null;
        route_id: string;
        repeat_window_ms: number;
      };
    };
  } | {
    kind: 'failure_reported';
    request: {
      dialect: string;
      method: string;
      target_sha256: string;
    };
  };
  LedgerClaimOutcome: {
    kind: 'claimed' | 'in_use' | 'unfinished' | 'spent' | 'redeemable' | 'already_paid';
    charge: Schemas['LedgerClaim'];
  } | {
    kind: 'quote_already_used' | 'too_many_unsettled' | 'too_many_passes';
  };
  LedgerChangeOutcome: {
    kind: 'ok';
    charge: Schemas['LedgerClaim'];
  } | {
    kind: 'conflict';
    because: 'wrong_state' | 'not_owner' | 'lease_running' | 'not_due' | 'proof_mismatch' | 'not_redeemable' | 'still_redeemable' | 'refund_exceeds' | 'refund_recorded' | 'proof_used' | 'unknown_charge';
    charge: Schemas['LedgerClaim'] | null;
  };
  LedgerRenewalRequest: {
    owner: string;
    ids: string[];
    lease_ms: number;
  };
  LedgerRenewals: {
    ids: string[];
  };
  LedgerClaims: {
    data: Schemas['LedgerClaim'][];
  };
  /** What became of a charge, a request or a transaction. */
  Why: {
    id: string;
    charges: Schemas['Charge'][];
    quote: {
      signed_here: boolean;
      route_id: string | null;
      route_method: string | null;
      route_pattern: string | null;
      method: string | null;
      amount: string | null;
      currency: string | null;
      issued_at: string | null;
      expires_at: string | null;
      expired: boolean | null;
    } | null;
    refusals: {
      at: string;
      request_id: string;
      method: string;
      path: string;
      status: number;
      outcome: string;
      reason: string | null;
      route_id: string | null;
      route_pattern: string | null;
      charge_id: string | null;
    }[];
    refusals_elsewhere: boolean;
    ledger_elsewhere: boolean;
  };
  LedgerDrawRequest: {
    changes: ({
      kind: 'reserve';
      use_id: string;
      owner: string;
      amount: string;
      lease_ms: number;
      key: {
        sha256: string;
        method: string;
        target_sha256: string;
        for_ms?: number;
        asks?: number;
      } | null;
      of: {
        plan_id: string;
        route_id: string;
        kind: 'seconds' | 'uses' | 'credit';
        currency: string;
      };
    } | {
      kind: 'take';
      use_id: string;
      owner: string;
      amount: string | null;
    } | {
      kind: 'give_back';
      use_id: string;
      owner: string;
      because: 'not_charged' | 'left' | 'unasked' | 'unheard';
      key_sha256?: string;
    })[];
  };
  LedgerDrawOutcomes: {
    results: ({
      kind: 'reserved' | 'repeated' | 'taken' | 'given_back';
      use_id: string;
      left: string;
      terms_id: string;
      worth: string;
    } | {
      kind: 'in_use' | 'used_up' | 'unknown' | 'expired' | 'revoked' | 'scope' | 'conflict' | 'lost';
    })[];
  };
  LedgerPasses: {
    data: {
      id: string;
      terms: Record<string, string>;
      route_id: string;
      payer: string;
      network: string;
      amount: string;
      currency: string;
      sold_at: number;
      ends_at: number;
      revoked_at: number | null;
      sold: string;
      drawn: string;
      reserved: string;
      uses: number;
      lost: number;
      gone: number;
    }[];
  };
  LedgerRevocations: {
    data: {
      id: string;
      revoked_at: number;
      ends_at: number;
    }[];
  };
  /** What the proxy would do with a request. `answer` is null if it goes upstream, or with `reason` if this process cannot say. */
  Try: {
    target: string | null;
    problem: {
      status: number;
      code: string;
      detail: string;
    } | null;
    matched: boolean;
    payment_required: boolean;
    route: Schemas['Route'] | null;
    params: Record<string, string>;
    because: {
      route_id: string;
      route_pattern: string;
      method: string;
      wins: boolean;
      why: string;
    }[];
    plan: {
      id: string;
      decides: string;
    } | null;
    answer: {
      status: number;
      headers: string[][];
      body: string | Record<string, unknown>;
    } | null;
    reason: string | null;
    curl: string | null;
  };
  /** What a pattern would do. `shadows` names at most 20 routes that cover paths of it; `by_whom` is `this one` or the id of the route that wins there. */
  PatternHelp: {
    valid: boolean;
    problem: string | null;
    key: string | null;
    matches: string[];
    not: string[];
    existing_id: string | null;
    shadows: {
      route_id: string;
      by_whom: string;
    }[];
  };
  /** A key of the configuration has no `id`. `last_used_at` is to the hour. Never the key itself. */
  ApiKey: {
    id: string | null;
    name: string;
    scopes: ('sdk' | 'ledger')[];
    where: 'store' | 'configuration';
    created_at: string | null;
    created_by: string | null;
    last_used_at: string | null;
    revoked_at: string | null;
  };
  ApiKeyList: {
    data: Schemas['ApiKey'][];
  };
  /** `key` is told once and cannot be had again. */
  NewApiKey: {
    id: string | null;
    name: string;
    scopes: ('sdk' | 'ledger')[];
    where: 'store' | 'configuration';
    created_at: string | null;
    created_by: string | null;
    last_used_at: string | null;
    revoked_at: string | null;
    key: string;
  };
  ApiKeyCreation: {
    name: string;
    scopes: ('sdk' | 'ledger')[];
  };
  /** Facilitators and nodes are named by their host alone. `testnet` is null if it is not known. `last_error` says why the last call failed and `since` when that began; `p50_ms` is the median of the last answers. */
  Receiver: {
    id: string;
    ways: {
      scheme: string;
      network: string;
      network_name: string | null;
      testnet: boolean | null;
      asset: string;
      symbol: string | null;
      decimals: number;
      pay_to_address: string;
      address_url: string | null;
      facilitators: {
        host: string;
        auth: 'bearer' | 'cdp' | 'payai' | null;
        status: 'ok' | 'resting' | 'unauthorized' | 'failing' | 'unasked';
        since: string | null;
        last_error: string | null;
        p50_ms: number | null;
      }[];
      rpc: {
        host: string;
        status: 'ok' | 'failing' | 'unasked';
      } | null;
    }[];
    currencies: string[];
    routes: number;
  };
  ReceiverList: {
    data: Schemas['Receiver'][];
  };
  /** What `tollgate check --online` finds. `ok` is false if a payment could be refused, or a service is away. */
  ReceiverCheck: {
    ok: boolean;
    findings: {
      level: 'ok' | 'warning' | 'cannot_serve' | 'away';
      detail: string;
    }[];
    checked_at: string;
  };
  /** A sidecar by its own word; `address` and `last_seen` are what the registry saw. `behind` counts changes of routes that it does not have yet. What a sidecar does not say of itself is null. */
  Sidecar: {
    name: string;
    version: string | null;
    address: string | null;
    since: string | null;
    last_seen: string;
    revision: number | null;
    behind: number | null;
    ready: boolean | null;
    reasons: string[];
  };
  SidecarList: {
    data: Schemas['Sidecar'][];
  };
  /** Something that needs somebody. `detail` says what is and what to do; `link` is a path of the desk; `since` when the first process found it. */
  Attention: {
    code: 'settlement_unknown' | 'facilitator_failing' | 'facilitator_unauthorized' | 'receiver_unpayable' | 'ledger_unavailable' | 'store_low' | 'sync_stale' | 'routes_held_back' | 'sidecar_silent' | 'webhook_failing' | 'webhook_disabled' | 'config_refused' | 'config_differs' | 'clock_off';
    severity: 'page' | 'ticket';
    subject: string | null;
    detail: string;
    since: string;
    count: number;
    link: string | null;
  };
  AttentionList: {
    data: Schemas['Attention'][];
    checked_at: string;
  };
  /** Who changed what, or was refused. `from` and `to` hold the members that changed and no others, and never a secret. `subject` is the id of the route, key, receiver, webhook, session, charge or pass, or the address of who was refused; `subject_name` what people know it by, if that is known; `actor` a subject, the id or name of an API key, or a user of the machine; `request_id` what the caller sent as `X-Request-Id`. */
  AuditEntry: {
    id: string;
    at: string;
    actor: string;
    via: 'jwt' | 'session' | 'link' | 'oidc' | 'api_key' | 'command_line' | 'configuration' | 'tollgate';
    kind: 'route.created' | 'route.updated' | 'route.deleted' | 'api_key.created' | 'api_key.revoked' | 'session.created' | 'session.refused' | 'session.ended' | 'receiver.checked' | 'webhook.tested' | 'webhook.enabled' | 'webhook.disabled' | 'webhook.retried' | 'charge.settled' | 'charge.failed' | 'charge.refunded' | 'pass.revoked' | 'config.taken' | 'config.refused';
    subject: string;
    subject_name: string | null;
    from: Record<string, unknown>;
    to: Record<string, unknown>;
    request_id: string | null;
  };
  AuditLog: {
    data: Schemas['AuditEntry'][];
    next_cursor: string | null;
  };
  /** What was earned and how requests ended in a time. */
  Overview: {
    from: string;
    to: string;
    revenue: {
      currency: string;
      amount: string;
      previous: string;
    }[];
    requests: {
      free: number;
      paid: number;
      payment_required: number;
      refused: number;
      error: number;
      released: number;
      discovery: number;
      observed: number;
      customer: number;
      pass: number;
      quota: number;
    };
    previous: {
      free: number;
      paid: number;
      payment_required: number;
      refused: number;
      error: number;
      released: number;
      discovery: number;
      observed: number;
      customer: number;
      pass: number;
      quota: number;
    };
    conversion: number | null;
    overhead_ms: {
      p50: number;
      p99: number;
    } | null;
    routes: {
      active: number;
      paused: number;
    };
    charges: {
      claimed: number;
      settling: number;
      settled: number;
      delivered: number;
      released: number;
      failed: number;
    };
    sync: {
      sidecars: number;
      stale: number;
      uncounted: number;
      lost: number;
    };
    as_of: string;
  };
  /** The same step by step, in columns of one length. */
  Series: {
    from: string;
    to: string;
    step: 'minute' | 'hour' | 'day';
    times: string[];
    requests: Partial<Record<'free' | 'paid' | 'payment_required' | 'refused' | 'error' | 'released' | 'discovery' | 'observed' | 'customer' | 'pass' | 'quota', number[]>>;
    revenue: {
      currency: string;
      amounts: string[];
    }[];
    overhead_ms: {
      p50: (number | null)[];
      p99: (number | null)[];
    } | null;
    complete_until: string;
  };
  /** Routes by what they earned or how often they were asked for. */
  TopRoutes: {
    from: string;
    to: string;
    data: {
      route_id: string;
      route: Schemas['Route'] | null;
      requests: {
        free: number;
        paid: number;
        payment_required: number;
        refused: number;
        error: number;
        released: number;
        discovery: number;
        observed: number;
        customer: number;
        pass: number;
        quota: number;
      };
      revenue: {
        currency: string;
        amount: string;
      }[];
      conversion: number | null;
    }[];
    others: {
      requests: {
        free: number;
        paid: number;
        payment_required: number;
        refused: number;
        error: number;
        released: number;
        discovery: number;
        observed: number;
        customer: number;
        pass: number;
        quota: number;
      };
      revenue: {
        currency: string;
        amount: string;
      }[];
      conversion: number | null;
    };
  };
  /** What a sidecar counted since its last batch. */
  LedgerTotals: {
    source: string;
    seq: number;
    rows: ({
      step: 'minute';
      start: string;
      requests: Partial<Record<'free' | 'paid' | 'payment_required' | 'refused' | 'error' | 'released' | 'discovery' | 'observed' | 'customer' | 'pass' | 'quota', number>>;
      overhead: number[];
    } | {
      step: 'hour';
      start: string;
      route_id: string;
      requests: Partial<Record<'free' | 'paid' | 'payment_required' | 'refused' | 'error' | 'released' | 'discovery' | 'observed' | 'customer' | 'pass' | 'quota', number>>;
    } | {
      step: 'sale';
      start: string;
      kind: 'plan' | 'would_charge' | 'customers' | 'customer';
      subject: string;
      detail: string;
      requests: number;
      amount: string;
      scale: number;
    })[];
    status?: {
      name: string;
      version: string;
      since: string;
      revision: number | null;
      ready: boolean;
      reasons: string[];
      ending: boolean;
      attention?: {
        code: 'settlement_unknown' | 'facilitator_failing' | 'facilitator_unauthorized' | 'receiver_unpayable' | 'ledger_unavailable' | 'store_low' | 'sync_stale' | 'routes_held_back' | 'sidecar_silent' | 'webhook_failing' | 'webhook_disabled' | 'config_refused' | 'config_differs' | 'clock_off';
        severity: 'page' | 'ticket';
        subject: string;
        detail: string;
        count: number;
      }[];
    };
  };
  /** What plans earned and gave away, and who need not pay. */
  PlanList: {
    from: string;
    to: string;
    data: {
      id: string;
      known: boolean;
      sells: string | null;
      observe_until: string | null;
      observing: boolean;
      routes: number;
      requests: {
        free: number;
        paid: number;
        payment_required: number;
        refused: number;
        error: number;
        released: number;
        discovery: number;
        observed: number;
        customer: number;
        pass: number;
        quota: number;
      };
      revenue: {
        currency: string;
        amount: string;
      }[];
      would_charge: {
        currency: string;
        amount: string;
        requests: number;
      }[];
    }[];
    customers: {
      id: string;
      by: 'keys' | 'jwt' | 'networks' | 'ask' | null;
      plans: string[];
      quota: {
        requests: number;
        window: 'hour' | 'day' | 'month';
      } | null;
      requests: {
        known: number;
        unknown: number;
        expired: number;
        quota: number;
        unavailable: number;
      };
      names: {
        name: string;
        requests: number;
      }[];
      others: number;
    }[];
    as_of: string;
  };
  /** A pass that was sold. `sold`, `drawn`, `left`, `reserved` and `lapsed` are uses, or decimals of its currency: `sold` is the sum of the others at any moment. */
  Pass: {
    id: string;
    charge_id: string;
    status: 'live' | 'used_up' | 'ended' | 'revoked';
    plan: string;
    pass: string;
    kind: 'seconds' | 'uses' | 'credit';
    scope: 'plan' | 'route';
    route_id: string;
    payer: string;
    payer_url: string | null;
    network: string;
    network_name: string | null;
    amount: string;
    currency: string;
    seconds: number | null;
    sold: string | null;
    drawn: string | null;
    left: string | null;
    reserved: string | null;
    lapsed: string | null;
    uses: number | null;
    sold_at: string;
    ends_at: string;
    revoked_at: string | null;
  };
  PassList: {
    data: Schemas['Pass'][];
    next_cursor: string | null;
  };
  /** An endpoint of the configuration. Never its URL or a secret. */
  Webhook: {
    id: string;
    host: string;
    events: ('*' | 'charge.claimed' | 'charge.settled' | 'charge.delivered' | 'charge.released' | 'charge.failed' | 'charge.unknown' | 'charge.refunded' | 'route.created' | 'route.updated' | 'route.deleted' | 'attention.raised' | 'attention.cleared')[];
    status: 'ok' | 'failing' | 'disabled';
    since: string | null;
    waiting: number;
    oldest_waiting_at: string | null;
    last_success_at: string | null;
    last_error: string | null;
  };
  WebhookList: {
    data: Schemas['Webhook'][];
  };
  /** One event on its way to one endpoint. */
  WebhookDelivery: {
    event_id: string;
    type: 'charge.claimed' | 'charge.settled' | 'charge.delivered' | 'charge.released' | 'charge.failed' | 'charge.unknown' | 'charge.refunded' | 'route.created' | 'route.updated' | 'route.deleted' | 'attention.raised' | 'attention.cleared' | 'test';
    subject: string | null;
    created_at: string;
    status: 'waiting' | 'taken' | 'given_up';
    next_attempt_at: string | null;
    attempts: {
      at: string;
      status: number | null;
      duration_ms: number;
      body: string;
    }[];
  };
  WebhookDeliveryList: {
    data: Schemas['WebhookDelivery'][];
    next_cursor: string | null;
  };
  WebhookEventSent: {
    event_id: string;
  };
  WebhookEnabled: {
    id: string;
  };
}

export interface Operations {
  '/v1/billing/protected-routes': {
    /** Routes, newest first, a page at a time. Filters apply together. Send `next_cursor` back as `cursor` for the page after; it is null on the last. */
    GET: {
      query?: {
        /** Left out: 50. */
        limit?: number | undefined;
        cursor?: string | undefined;
        /** A paused route costs nothing. */
        status?: 'active' | 'paused' | undefined;
        /** An HTTP method, or `*` for any. Upper-cased when stored. */
        method?: string | undefined;
        source?: string | undefined;
        q?: string | undefined;
      };
      answer: Schemas['RouteList'];
    };
    /** Make a route. Refused with 409 and `existing_id` where a route with this method and an equal pattern exists. */
    POST: {
      body: Schemas['RouteCreation'];
      answer: Schemas['Route'];
    };
  };
  '/v1/billing/protected-routes/{id}': {
    /** One route. Send the `ETag` of an earlier answer as `If-None-Match` to read it only if it changed. */
    GET: {
      params: {
        id: string;
      };
      answer: Schemas['Route'];
      unchanged: true;
    };
    /** Change a route. Members that are left out stay as they are; `null` empties those that may be null. Send the `ETag` that you read as `If-Match`, so that no other change is lost. */
    PATCH: {
      params: {
        id: string;
      };
      body: Schemas['RoutePatch'];
      answer: Schemas['Route'];
    };
    /** Delete a route. Requests to its paths are free from then on, unless another route names them. To stop charging for a while, pause it. */
    DELETE: {
      params: {
        id: string;
      };
      answer: undefined;
    };
  };
  '/v1/billing/protected-routes/{id}/changes': {
    /** Who changed a route, newest first, a page at a time. Also of a route that was deleted, for as long as its changes are kept. */
    GET: {
      params: {
        id: string;
      };
      query?: {
        /** Left out: 50. */
        limit?: number | undefined;
        cursor?: string | undefined;
      };
      answer: Schemas['RouteChanges'];
    };
  };
  '/v1/protected-routes/routes': {
    /** All routes, active and paused, as one set. Poll it with `If-None-Match`: 304 while nothing changed. Query parameters that are not known are ignored. */
    GET: {
      answer: Schemas['Route'][];
      unchanged: true;
    };
  };
  '/v1/protected-routes/routes/register': {
    /** Make a route where there is none with this method and pattern. For an application’s every start. A route with this method and pattern stays as it is, with what the dashboard changed: 200. Refused with 409 `price_lowered` if it would make a path cheaper that the dashboard or the configuration prices. */
    POST: {
      body: Schemas['RouteRegistration'];
      answer: Schemas['Route'];
    };
  };
  '/v1/protected-routes/match': {
    /** Which route a request would meet. Decided by the matcher of the proxy. Percent-encode `path` once more than the request does, as any value of a query. If `ambiguous` is there, a proxy refuses the path. */
    GET: {
      query: {
        path: string;
        method: string;
      };
      answer: Schemas['Match'];
    };
  };
  '/v1/protected-routes/events': {
    /** Changes of routes as they happen (Server-Sent Events). After `reset` the whole set has to be read again. Every 15 seconds, and once after what `Last-Event-ID` asks for, `head` says what the set is: `revision`, the number of `routes`, and a `digest` of 64 hex digits, the sum modulo 2^256 of the SHA-256 of each route’s JSON as the whole set has it. Who has applied every event in order has that digest; who has another one reads the whole set. */
    GET: {
      events: {
        'route.created': Schemas['Route'];
        'route.updated': Schemas['Route'];
        'route.deleted': {
          id: string;
        };
        reset: {
          revision: number;
        };
        head: {
          revision: number;
          routes: number;
          digest: string;
        };
      };
    };
  };
  '/v1/billing/charges': {
    /** Charges, newest first, a page at a time. `status` takes several states with commas between. `q` takes a charge id or its first 12 characters or more, the id of a request, a payer or a transaction, and tells them apart by their form. `owed=true` lists what was paid for and can be delivered no more. Times are RFC 3339, or dates. */
    GET: {
      query?: {
        /** Left out: 50. */
        limit?: number | undefined;
        cursor?: string | undefined;
        status?: string | undefined;
        owed?: 'true' | undefined;
        route_id?: string | undefined;
        network?: string | undefined;
        payer?: string | undefined;
        customer_id?: string | undefined;
        transaction?: string | undefined;
        request_id?: string | undefined;
        currency?: string | undefined;
        receiver_id?: string | undefined;
        q?: string | undefined;
        from?: string | undefined;
        to?: string | undefined;
      };
      answer: Schemas['ChargeList'];
    };
  };
  '/v1/billing/charges.csv': {
    /** Charges of a time as a file, newest first. The filters of the list; `from` and `to` are needed, at most 92 days apart. The columns are the members of a charge. A value that begins with `=`, `+`, `-`, `@`, a tab or a return has an apostrophe before it, so that no spreadsheet takes it for a formula. Two files are written at a time. */
    GET: {
      query: {
        status?: string | undefined;
        owed?: 'true' | undefined;
        route_id?: string | undefined;
        network?: string | undefined;
        payer?: string | undefined;
        customer_id?: string | undefined;
        transaction?: string | undefined;
        request_id?: string | undefined;
        currency?: string | undefined;
        receiver_id?: string | undefined;
        q?: string | undefined;
        from: string;
        to: string;
      };
      answer: string;
    };
  };
  '/v1/billing/charges/events': {
    /** Changes of charges as they happen (Server-Sent Events). An event `charge` for every change of state, whichever process made it; its data is the charge. More than 50 of one second are counted in `skipped`. `Last-Event-ID` resumes within 5 minutes; after `reset` the list has to be read again. A comment every 15 seconds. The stream ends with the session or the token that opened it; 10 at a time for one subject, 100 in all. */
    GET: {
      query?: {
        status?: string | undefined;
        route_id?: string | undefined;
      };
      events: {
        charge: Schemas['Charge'];
        skipped: {
          count: number;
        };
        reset: Record<string, never>;
      };
    };
  };
  '/v1/billing/charges/{id}': {
    /** One charge. By its whole id. Never answers a credential or a kept answer. */
    GET: {
      params: {
        id: string;
      };
      answer: Schemas['Charge'];
    };
  };
  '/v1/billing/charges/{id}/history': {
    /** What happened to a charge, oldest first. Oldest first, at most 64. `by` is `request`, `reconciler`, `operator` or `store`; of charges from before version 0.1 only their times are known, and `by` is null. */
    GET: {
      params: {
        id: string;
      };
      answer: Schemas['ChargeHistory'];
    };
  };
  '/v1/billing/charges/{id}/refunds': {
    /** Record that money of a charge was given back. Tollgate sends no money: it records what you sent. `amount` is a decimal, left out all that is left of the charge. Proven on the chain: the transaction holds a transfer of the charge’s token to its payer, of at least the amount, younger than the payment and `confirmations` deep, whoever sent it; one transfer proves one refund. `unproven: true` records it by your word, where no chain can be read. The same transaction again is 200 and changes nothing. */
    POST: {
      params: {
        id: string;
      };
      body: Schemas['RefundRequest'];
      answer: Schemas['Charge'];
    };
  };
  '/v1/billing/owed.csv': {
    /** What is owed as a file, a line for one transfer. Whom to give money back: a line for each charge that is owed, of all times. `to` is the payer, `amount` what is left to give back, `since` when it was taken, `reason` whose fault it is. Record what you sent with `refundCharge`: the charge is owed no more. */
    GET: {
      query?: {
        route_id?: string | undefined;
        network?: string | undefined;
        currency?: string | undefined;
        receiver_id?: string | undefined;
        payer?: string | undefined;
        from?: string | undefined;
        to?: string | undefined;
      };
      answer: string;
    };
  };
  '/v1/billing/why/{id}': {
    /** What became of a charge, a request or a transaction, and why. `id` is that of a charge or its beginning, of a 402, of a request, or a transaction. */
    GET: {
      params: {
        id: string;
      };
      answer: Schemas['Why'];
    };
  };
  '/v1/billing/summary': {
    /** What was taken, by route, currency and time. The last 30 days unless `from` and `to` say otherwise. `amount_atomic` is exact, in units of the asset. Each sum is of one route, or of all routes if `group_by` is `network`. */
    GET: {
      query?: {
        from?: string | undefined;
        to?: string | undefined;
        /** Left out: "day". */
        bucket?: 'hour' | 'day' | 'month' | 'total' | undefined;
        group_by?: 'network' | undefined;
        route_id?: string | undefined;
        currency?: string | undefined;
      };
      answer: Schemas['Summary'];
    };
  };
  '/v1/billing/overview': {
    /** What was earned and how requests ended, beside the time before. The last 24 hours unless `from` and `to` say otherwise, widened to whole steps of what is kept; `previous` is the same time before. `conversion` is `paid` by `payment_required`. Added latency is that of all requests. */
    GET: {
      query?: {
        from?: string | undefined;
        to?: string | undefined;
      };
      answer: Schemas['Overview'];
    };
  };
  '/v1/billing/series': {
    /** Requests, revenue and added latency, step by step. At most 1,000 points. Minutes are of all routes together and of the last 48 hours; days are of UTC. Left out, `step` is the one that fits. With `network` charges alone are known. */
    GET: {
      query?: {
        from?: string | undefined;
        to?: string | undefined;
        /** Left out: "auto". */
        step?: 'minute' | 'hour' | 'day' | 'auto' | undefined;
        route_id?: string | undefined;
        currency?: string | undefined;
        network?: string | undefined;
      };
      answer: Schemas['Series'];
    };
  };
  '/v1/billing/top-routes': {
    /** The routes that earned most or were asked for most often. `by` is `requests` unless it says otherwise; `revenue` needs `currency`. An hour and a day name 1,000 routes; what the rest did is in `others`. */
    GET: {
      query?: {
        from?: string | undefined;
        to?: string | undefined;
        /** Left out: "requests". */
        by?: 'revenue' | 'paid' | 'payment_required' | 'requests' | undefined;
        currency?: string | undefined;
        limit?: string | undefined;
      };
      answer: Schemas['TopRoutes'];
    };
  };
  '/v1/billing/plans': {
    /** Plans with what they earned and gave away, and how customers were taken. The last 24 hours unless `from` and `to` say otherwise, in whole hours. Revenue is that of the routes which a plan sells now; `would_charge` is what a dry run would have asked for. Plans that only sidecars know are there with `known` false once requests of theirs were counted. An entry lists the 20 customers of its key file with the most requests. */
    GET: {
      query?: {
        from?: string | undefined;
        to?: string | undefined;
      };
      answer: Schemas['PlanList'];
    };
  };
  '/v1/billing/passes': {
    /** Passes that were sold, newest first, a page at a time. Filters apply together: `plan`, `pass` (the id of its terms in the plan), `payer` in any spelling, and `live`: `true` for passes that can be used, `false` for those that were revoked, are used up or have ended. */
    GET: {
      query?: {
        /** Left out: 50. */
        limit?: number | undefined;
        cursor?: string | undefined;
        plan?: string | undefined;
        pass?: string | undefined;
        payer?: string | undefined;
        live?: 'true' | 'false' | undefined;
      };
      answer: Schemas['PassList'];
    };
  };
  '/v1/billing/passes/{id}': {
    /** One pass, with what is left of it. Its id is that of its charge with `pass_` for `chg_`. `sold` is `drawn`, `left`, `reserved` and `lapsed` together at any moment, in uses or in its currency; a pass by seconds has no such sum. Never answers the token that its holder shows. */
    GET: {
      params: {
        id: string;
      };
      answer: Schemas['Pass'];
    };
  };
  '/v1/billing/passes/{id}/revoke': {
    /** End a pass before its time. At once for uses and credit, within 10 seconds everywhere for seconds; what is left lapses, and requests that go on end as they would. Revoked again it stays as it was. No money goes back by itself: record what you send with `refundCharge` on its charge. A refund of the whole price revokes the pass. */
    POST: {
      params: {
        id: string;
      };
      answer: Schemas['Pass'];
    };
  };
  '/v1/billing/pattern': {
    /** What a pattern would cover, before a route is made of it. Read and matched by the code of the proxy. A pattern that cannot be read is no error here: `valid` is false and `problem` says why. `shadows` are routes of the same method that cover paths of it. */
    GET: {
      query: {
        route_pattern: string;
        /** An HTTP method, or `*` for any. Upper-cased when stored. */
        method?: string | undefined;
      };
      answer: Schemas['PatternHelp'];
    };
  };
  '/v1/billing/try': {
    /** What becomes of a request, without sending it. Decided by the code of the proxy. A 402 in `answer` is one that it would write: its charge id holds. Nothing is counted or stored. */
    GET: {
      query: {
        path: string;
        method: string;
      };
      answer: Schemas['Try'];
    };
  };
  '/v1/api-keys': {
    /** API keys of the configuration and of the store. Keys of the configuration come first, without an id: only its file can take them away. */
    GET: {
      answer: Schemas['ApiKeyList'];
    };
    /** Make an API key. `key` is told once: only its SHA-256 is kept. At most 200 keys are live. */
    POST: {
      body: Schemas['ApiKeyCreation'];
      answer: Schemas['NewApiKey'];
    };
  };
  '/v1/api-keys/{id}': {
    /** Revoke an API key. Holds from the next request, in every process of the store, and ends streams of the key. */
    DELETE: {
      params: {
        id: string;
      };
      answer: undefined;
    };
  };
  '/v1/billing/attention': {
    /** What needs somebody, worst first. Of all processes on the store and of the sidecars that report to it. An empty list: nothing is known to be wrong. */
    GET: {
      answer: Schemas['AttentionList'];
    };
  };
  '/v1/audit': {
    /** Who changed what, newest first, a page at a time. Filters apply together and are exact. An entry is written with its change: there is none without the other. Refused sign-ins of one address are counted together, hour by hour. */
    GET: {
      query?: {
        /** Left out: 50. */
        limit?: number | undefined;
        cursor?: string | undefined;
        subject?: string | undefined;
        actor?: string | undefined;
        kind?: 'route.created' | 'route.updated' | 'route.deleted' | 'api_key.created' | 'api_key.revoked' | 'session.created' | 'session.refused' | 'session.ended' | 'receiver.checked' | 'webhook.tested' | 'webhook.enabled' | 'webhook.disabled' | 'webhook.retried' | 'charge.settled' | 'charge.failed' | 'charge.refunded' | 'pass.revoked' | 'config.taken' | 'config.refused' | undefined;
        from?: string | undefined;
        to?: string | undefined;
      };
      answer: Schemas['AuditLog'];
    };
  };
  '/v1/receivers': {
    /** Where money goes, and how the services stand that move it. Receivers of the configuration of this process; those of sidecars are in their own. `status` of a facilitator is `resting` while it is left alone, `unauthorized` if it takes no call of this account, `failing` if the last call got no usable answer, and `unasked` before the first. Looking asks what was not heard of for a minute again, in the background. */
    GET: {
      answer: Schemas['ReceiverList'];
    };
  };
  '/v1/receivers/{id}/check': {
    /** Ask the services of a receiver whether it can be paid. What `tollgate check --online` finds for this receiver: facilitators, their word on a payment that cannot be valid, and nodes. No money moves. Once per receiver and 10 seconds. */
    POST: {
      params: {
        id: string;
      };
      answer: Schemas['ReceiverCheck'];
    };
  };
  '/v1/sidecars': {
    /** Sidecars of this registry, and how they stand. Sidecars that hand counts over or hold a stream here, the workers of one as one; those that stopped are left out. `behind` counts changes of routes. `ready` is null if a sidecar says nothing of itself: then its key lacks the scope `ledger`, and its requests are in no sum. At most 1,000. */
    GET: {
      answer: Schemas['SidecarList'];
    };
  };
  '/v1/webhooks': {
    /** Endpoints that events are sent to. Endpoints come from the configuration alone. `failing`: the last attempt failed; `disabled`: it answered 410, or for five days nothing of the kind 2xx, and nothing is sent. */
    GET: {
      answer: Schemas['WebhookList'];
    };
  };
  '/v1/webhooks/{id}/deliveries': {
    /** Events on their way to an endpoint, newest first, a page at a time. Taken events are kept for 7 days, those given up for 30, those that wait for a disabled endpoint for 7. An event of a charge waits until every earlier one of it was taken or given up. */
    GET: {
      params: {
        id: string;
      };
      query?: {
        /** Left out: 50. */
        limit?: number | undefined;
        cursor?: string | undefined;
        status?: 'waiting' | 'taken' | 'given_up' | undefined;
      };
      answer: Schemas['WebhookDeliveryList'];
    };
  };
  '/v1/webhooks/{id}/test': {
    /** Send a test event to an endpoint. An event of the type `test`, whatever types the endpoint wants. Deliveries say what became of it. */
    POST: {
      params: {
        id: string;
      };
      answer: Schemas['WebhookEventSent'];
    };
  };
  '/v1/webhooks/{id}/enable': {
    /** Send to a disabled endpoint again. All that waits is due at once, by a new schedule. An endpoint that is not disabled is left as it is but for that. */
    POST: {
      params: {
        id: string;
      };
      answer: Schemas['WebhookEnabled'];
    };
  };
  '/v1/webhooks/{id}/deliveries/{event_id}/retry': {
    /** Send an event once more. For an event that was given up, one that waits, or one that was taken and lost there. Its id stays the same. */
    POST: {
      params: {
        id: string;
        event_id: string;
      };
      answer: Schemas['WebhookEventSent'];
    };
  };
  '/v1/ledger/claims': {
    /** Claim a payment for a request. Atomic: of many claims of one payment one is `claimed`. A call repeated with its `change_id` is the same call. */
    POST: {
      body: Schemas['LedgerClaimRequest'];
      answer: Schemas['LedgerClaimOutcome'];
    };
    /** Look a payment up, or charges without an owner. One of: `id`; `network`, `asset`, `payer` and `unique`; `due=true` for charges without an owner. */
    GET: {
      query?: {
        id?: string | undefined;
        network?: string | undefined;
        asset?: string | undefined;
        payer?: string | undefined;
        unique?: string | undefined;
        due?: 'true' | undefined;
        limit?: string | undefined;
      };
      answer: Schemas['LedgerClaims'];
    };
  };
  '/v1/ledger/claims/{id}': {
    /** Take a charge from one state to the next. What cannot happen in the state that the charge is in is a `conflict`, and changes nothing. */
    PATCH: {
      params: {
        id: string;
      };
      body: Schemas['LedgerChangeRequest'];
      answer: Schemas['LedgerChangeOutcome'];
    };
  };
  '/v1/ledger/renewals': {
    /** Say that charges are still being worked on. Ids of charges and of uses of passes. A charge whose lease ran out may be taken over by another sidecar; a use is given back. */
    POST: {
      body: Schemas['LedgerRenewalRequest'];
      answer: Schemas['LedgerRenewals'];
    };
  };
  '/v1/ledger/counters': {
    /** Count requests by identity and window, or give counted ones back. Up to 100 changes, each atomic and durable, in their order. `identity` is a keyed digest. A change that is repeated under its `change_id` counts once. */
    POST: {
      body: {
        changes: ({
          kind: 'take';
          scope: string;
          window_start: number;
          window_end: number;
          identity: string;
          change_id: string;
          limit: number;
          identities: number;
          group: string | null;
          group_identities: number;
        } | {
          kind: 'give_back';
          scope: string;
          window_start: number;
          window_end: number;
          identity: string;
          change_id: string;
        })[];
      };
      answer: {
        results: {
          kind: 'counted' | 'used_up' | 'full' | 'given_back';
          used?: number;
        }[];
      };
    };
  };
  '/v1/ledger/passes/{id}/draws': {
    /** Reserve uses of a pass, take them, or give them back. Up to 100 changes of one pass, each atomic and durable, in their order. A use names its request by `use_id` and `owner`: a change that is repeated with them is the same change, and a reservation that was given up is never made later. */
    POST: {
      params: {
        id: string;
      };
      body: Schemas['LedgerDrawRequest'];
      answer: Schemas['LedgerDrawOutcomes'];
    };
  };
  '/v1/ledger/passes': {
    /** Passes of a payer that have not ended. At most 256, with their books. `gone` counts uses that were given back because the client left. */
    GET: {
      query: {
        payer: string;
      };
      answer: Schemas['LedgerPasses'];
    };
  };
  '/v1/ledger/revocations': {
    /** Passes that were revoked since a time. Passes that have not ended. `after` is in milliseconds since the epoch. */
    GET: {
      query: {
        after: string;
        limit?: string | undefined;
      };
      answer: Schemas['LedgerRevocations'];
    };
  };
  '/v1/ledger/totals': {
    /** Hand over what a sidecar counted. Sent every 10 seconds and at a stop, each batch under the next number of its source until it was taken. The same number again changes nothing; a number that never came is logged and shown. Rows of minutes are of all routes, rows of hours of one route; a row `sale` is what a plan did in an hour. */
    POST: {
      body: Schemas['LedgerTotals'];
      answer: undefined;
    };
  };
  '/desk/session': {
    /** Who is signed in. The page for owners asks it first. A 401 says in `sign_in` how people may sign in. */
    GET: {
      answer: {
        subject: string;
        role: 'admin' | 'viewer';
        via: 'link' | 'token' | 'oidc';
        expires_at: string;
        version: string;
        testnet: boolean;
      };
    };
    /** Sign in by the code of a link or a dashboard JWT. Sets the cookie of the session; `key` goes with every call, in `Tollgate-Desk`. The cookie alone opens nothing. */
    POST: {
      body: {
        code?: string;
        token?: string;
      };
      answer: {
        subject: string;
        role: 'admin' | 'viewer';
        via: 'link' | 'token' | 'oidc';
        expires_at: string;
        version: string;
        testnet: boolean;
        key: string;
      };
    };
    /** Sign out. The session, its streams and its cookie end at once. */
    DELETE: {
      answer: undefined;
    };
  };
  '/desk/downloads': {
    /** Make a link that downloads something once. A link in a browser sends no header: this one is good once, for a minute, with the cookie. */
    POST: {
      body: {
        path: string;
      };
      answer: {
        url: string;
      };
    };
  };
  '/v1/desk-links': {
    /** Make a one-time link to the desk. What `tollgate desk --url` asks for: good once, for 5 minutes. */
    POST: {
      body: {
        /** Left out: "admin". */
        role?: 'admin' | 'viewer';
        as?: string;
      };
      answer: {
        url: string;
        expires_at: string;
      };
    };
  };
  '/v1/health': {
    /** Whether the registry is there. Says only that the process answers; whether it could take a payment is its admin listener’s to say. */
    GET: {
      answer: Schemas['Health'];
    };
  };
  '/v1/openapi.json': {
    /** This document. The document is made from the schemas that validate, so it says what this version does. */
    GET: {
      answer: Record<string, unknown>;
    };
  };
  '/openapi.json': {
    /** This document. The document is made from the schemas that validate, so it says what this version does. */
    GET: {
      answer: Record<string, unknown>;
    };
  };
}
