import GattherdMachines
import GattherdModel

/// A device's lease in words: the owner, the reason, and the bids.
struct LeaseWords {
    private let lease: DaemonStatus.Lease

    init(_ lease: DaemonStatus.Lease) {
        self.lease = lease
    }

    /// The owner with the reason, then one line for each bid.
    var lines: [String] {
        let owner = lease.owner.map { "gateway \($0) owns it, with epoch \(lease.epoch)" } ?? "no gateway owns it"
        let reason = lease.reason.isEmpty ? "" : ": \(lease.reason)"
        return [owner + reason] + state + bids.map(\.words) + problem
    }

    private var bids: [LeaseBid] {
        lease.bids.map { bid in
            LeaseBid(
                gateway: bid.gateway,
                standing: LeaseBid.Standing(rawValue: bid.standing) ?? .gone,
                rssi: bid.rssi,
                problem: bid.problem
            )
        }
    }

    private var state: [String] {
        switch LeaseStatus.Role(rawValue: lease.state) {
        case .claiming: ["this gateway claims it"]
        case .releasing: ["this gateway hands it over, once its link has ended"]
        case .alone: ["the centre is away: this gateway goes on, and refuses remote controls"]
        case .owner, .standby, nil: []
        }
    }

    private var problem: [String] { lease.problem.map { ["the centre does not answer: \($0)"] } ?? [] }

    func writeJSON(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("state")
        writer.string(lease.state)
        writer.key("owner")
        writer.optional(lease.owner) { $0.string($1) }
        writer.key("epoch")
        writer.integer(lease.epoch)
        writer.key("reason")
        writer.string(lease.reason)
        writer.key("problem")
        writer.optional(lease.problem) { $0.string($1) }
        writer.key("bids")
        writer.array(lease.bids) { write($1, to: &$0) }
        writer.endObject()
    }

    private func write(_ bid: DaemonStatus.Lease.Bid, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("gateway")
        writer.string(bid.gateway)
        writer.key("standing")
        writer.string(bid.standing)
        writer.key("rssi")
        writer.optional(bid.rssi) { $0.integer($1) }
        writer.key("problem")
        writer.optional(bid.problem) { $0.string($1) }
        writer.endObject()
    }
}
