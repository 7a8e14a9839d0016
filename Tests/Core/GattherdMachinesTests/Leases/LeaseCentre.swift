import GattherdMachines
import Testing

/// The leases at the centre, with the rules of its function `exchange_leases`, in virtual time.
struct LeaseCentre {
    struct Lease {
        var owner: String?
        var previous: String?
        var epoch: Int64 = 0
        var expires = Duration.zero
        var isReleased = true
        var reason = ""
    }

    private struct StoredBid {
        var bid: LeaseBid
        var updated: Duration
    }

    static let term = Duration.seconds(30)

    /// The centre's clock minus the time of the world.
    var clockOffset = Duration.zero
    var isDown = false
    private(set) var leases: [String: Lease] = [:]
    private var bids: [String: [String: StoredBid]] = [:]
    /// The gateways that may own a device; none for all.
    private(set) var gateways: [String: [String]] = [:]
    /// The gateway that had each epoch of each device, also if the centre has lost it.
    private var owners: [String: [Int64: String]] = [:]
    /// The leases and bids that a standby has.
    private var replica: (leases: [String: Lease], bids: [String: [String: StoredBid]], gateways: [String: [String]])?
    /// True once claims were lost; from then on epochs are at least the time in milliseconds.
    private var hasLostClaims = false

    mutating func exchange(_ requests: [LeaseRequest], from gateway: String, at time: Duration) -> [LeaseRow] {
        let now = time + clockOffset
        return requests.map { request in
            if request.isBidDue {
                bids[request.address, default: [:]][gateway] = StoredBid(bid: request.bid, updated: now)
            }
            setGateways(request, from: gateway)
            let isGranted = apply(request, from: gateway, at: now)
            return row(request.address, isGranted: isGranted, at: now)
        }
    }

    private mutating func setGateways(_ request: LeaseRequest, from gateway: String) {
        guard let wanted = request.gateways else { return }
        if let stored = gateways[request.address], stored.first != gateway { return }
        gateways[request.address] = wanted.isEmpty ? nil : wanted
    }

    private mutating func apply(_ request: LeaseRequest, from gateway: String, at now: Duration) -> Bool {
        var lease = leases[request.address, default: Lease()]
        let mayOwn = gateways[request.address]?.contains(gateway) ?? true
        let hasEnded = lease.isReleased || lease.expires <= now || lease.expires > now + Self.term * 2
        switch request.operation {
        case .observe: return false
        case .claim(let epoch):
            guard mayOwn, lease.epoch == epoch, hasEnded || lease.owner == gateway else { return false }
            if lease.owner != gateway { lease.previous = lease.owner }
            let least = hasLostClaims ? Int64(now / .milliseconds(1)) : 0
            (lease.owner, lease.epoch, lease.expires) = (gateway, max(lease.epoch + 1, least), now + Self.term)
            (lease.isReleased, lease.reason) = (false, request.reason)
            #expect(owners[request.address]?[lease.epoch] == nil)
            owners[request.address, default: [:]][lease.epoch] = gateway
        case .renew(let epoch):
            guard mayOwn, lease.epoch == epoch, lease.owner == gateway, !lease.isReleased else { return false }
            lease.expires = now + Self.term
        case .release(let epoch):
            guard lease.epoch == epoch, lease.owner == gateway else { return false }
            (lease.isReleased, lease.expires, lease.reason) = (true, now, request.reason)
        }
        leases[request.address] = lease
        return true
    }

    private func row(_ address: String, isGranted: Bool, at now: Duration) -> LeaseRow {
        let lease = leases[address] ?? Lease()
        var row = LeaseRow(address: address, epoch: lease.epoch)
        (row.owner, row.previous, row.isReleased) = (lease.owner, lease.previous, lease.isReleased)
        row.remaining = lease.expires > now + Self.term * 2 ? .zero : lease.expires - now
        (row.isGranted, row.reason, row.gateways) = (isGranted, lease.reason, gateways[address])
        row.bids = (bids[address] ?? [:]).values.map { LeaseRow.Bid($0.bid, age: Self.age($0, at: now)) }
        return row
    }

    /// The age of a bid; one of the future was made before the clock was set back.
    private static func age(_ bid: StoredBid, at now: Duration) -> Duration {
        bid.updated > now + term ? .seconds(86_400) : max(now - bid.updated, .zero)
    }

    /// Copies leases and bids to the standby.
    mutating func replicate() { replica = (leases, bids, gateways) }

    /// Continues with the leases and bids of the standby.
    mutating func failOver() {
        guard let replica else { return }
        (leases, bids, gateways) = replica
        hasLostClaims = true
    }

    /// The owner of the lease and its epoch; `nil` if it was released.
    func owner(of address: String) -> (name: String, epoch: Int64)? {
        guard let lease = leases[address], !lease.isReleased else { return nil }
        return lease.owner.map { ($0, lease.epoch) }
    }

    /// True if the gateway has had this epoch.
    func gave(_ epoch: Int64, of address: String, to gateway: String) -> Bool {
        owners[address]?[epoch] == gateway
    }
}
