/// A device of the configuration that has a lease.
public struct LeasedDevice: Hashable, Sendable {
    /// The device's name at this gateway.
    public var name: String
    /// The peripheral's address, which names the device for all gateways.
    public var address: String
    /// The gateways that may own the device, the one that it belongs to first; `nil` for all.
    public var gateways: [String]?
    /// False if the device only advertises; then the owner is the gateway that publishes it.
    public var isConnectable: Bool

    public init(name: String, address: String, gateways: [String]? = nil, isConnectable: Bool = true) {
        (self.name, self.address) = (name, address)
        (self.gateways, self.isConnectable) = (gateways, isConnectable)
    }
}

extension LeaseMachine {
    /// The state of a device's link at this gateway.
    public enum LinkPhase: Hashable, Sendable {
        /// No link and no attempt.
        case none
        /// No link, and none is made before the device is admitted.
        case withdrawn
        case attempting
        case linked
        /// The link is being ended.
        case ending
        /// A person has disconnected the device.
        case held
        /// The link failed, and a retry is pointless for now.
        case failed(String)
    }

    public enum Event: Hashable, Sendable {
        /// The devices of the configuration; those that are missing are released.
        case configured([LeasedDevice])
        /// An advertisement, with the adapter that heard it and the signal strength in dBm.
        case heard(device: String, adapter: String, rssi: Int)
        case link(device: String, LinkPhase)
        /// True if no adapter has a free slot.
        case slots(isFull: Bool)
        /// The answer to ``Effect/exchange(_:ticket:)``.
        case answered(ticket: Int, [LeaseRow])
        /// The centre did not answer; it may have carried out the request or not.
        case failed(ticket: Int)
        /// The gateway stops; `releases` is false if its links stay.
        case stop(releases: Bool)
        case tick
    }

    public enum Effect: Hashable, Sendable {
        /// Sends bids and requests to the centre; the answer has its leases and bids.
        case exchange([LeaseRequest], ticket: Int)
        /// This gateway may connect the device.
        case admit(device: String)
        /// This gateway must end its link.
        case withdraw(device: String, detail: String)
        /// This gateway has released or lost the device.
        case handedOver(device: String, LeaseCause)
        /// The owner has changed, for events and the log.
        case changed(device: String, LeaseStatus)
    }

    /// Durations of leases.
    public struct Policy: Hashable, Sendable {
        /// The duration of a lease, as the centre has it.
        public var duration = Duration.seconds(30)
        /// The time after which a lease is renewed, and a bid is repeated.
        public var renewal = Duration.seconds(10)
        /// The pause between two exchanges while no device may change its owner.
        public var calmPause = Duration.seconds(2)
        /// The pause while a device may change its owner.
        public var busyPause = Duration.milliseconds(500)
        /// The pause while a device is about to change its owner.
        public var quickPause = Duration.milliseconds(200)
        /// The shortest pause, for changes of this gateway's bids.
        public var shortestPause = Duration.milliseconds(100)
        /// The longest pause after a failed exchange.
        public var longestPause = Duration.seconds(10)
        /// The wait before a free device is claimed, in which other gateways may hear it.
        public var comparison = Duration.seconds(1)
        /// The time for which an owner that lost its link counts as hearing the device, and may get the link back.
        public var lossGrace = Duration.seconds(1)
        /// The time for which a new owner counts as hearing the device.
        public var claimGrace = Duration.seconds(5)
        /// The time in which an owner must get a link while another gateway hears the device.
        public var linkLimit = Duration.seconds(60)
        /// The time for which a gateway whose link failed makes no bid.
        public var failurePause = Duration.seconds(300)
        /// The time after the start at which a centre without an answer counts as unreachable.
        public var startLimit = Duration.seconds(10)
        /// The longest wait of a stop for the answer of the centre.
        public var stopLimit = Duration.seconds(2)

        /// The age at which a bid that was not repeated counts as missing.
        var bidLimit: Duration { renewal * 5 / 2 }

        public init() {}
    }
}

/// One device in an exchange with the centre.
public struct LeaseRequest: Hashable, Sendable {
    public enum Operation: Hashable, Sendable {
        /// Requests no change, only the answer.
        case observe
        /// Claims the lease if it is free and still has this epoch; the centre then gives it a greater one.
        case claim(epoch: Int64)
        case renew(epoch: Int64)
        case release(epoch: Int64)
    }

    public var device: String
    public var address: String
    /// The gateway's bid.
    public var bid: LeaseBid
    /// True if the bid has changed, or must be repeated.
    public var isBidDue: Bool
    public var operation: Operation
    /// The reason of a claim or a release.
    public var reason: String
    /// The gateways that may own the device, to be enforced by the centre; empty for all, `nil` for no change.
    public var gateways: [String]?

    public init(
        device: String,
        address: String,
        bid: LeaseBid,
        isBidDue: Bool,
        operation: Operation,
        reason: String = ""
    ) {
        (self.device, self.address, self.bid, self.isBidDue) = (device, address, bid, isBidDue)
        (self.operation, self.reason) = (operation, reason)
    }
}

/// The lease of a device and all bids for it, as the centre has them after an exchange.
public struct LeaseRow: Hashable, Sendable {
    public var address: String
    /// The last owner; `nil` if there was none.
    public var owner: String?
    public var epoch: Int64
    /// The rest of the lease by the clock of the centre; not positive if it has expired.
    public var remaining: Duration
    public var isReleased: Bool
    /// True if the centre has performed the operation of the request.
    public var isGranted: Bool
    /// The owner before.
    public var previous: String?
    /// The reason of the last claim or release.
    public var reason: String
    /// The gateways that may own the device, as the centre has them; `nil` for all.
    public var gateways: [String]?
    public var bids: [Bid]

    /// A bid with its age by the clock of the centre.
    public struct Bid: Hashable, Sendable {
        public var bid: LeaseBid
        public var age: Duration

        public init(_ bid: LeaseBid, age: Duration) {
            (self.bid, self.age) = (bid, age)
        }
    }

    public init(address: String, epoch: Int64 = 0) {
        (self.address, self.epoch) = (address, epoch)
        (owner, remaining, isReleased, isGranted) = (nil, .zero, true, false)
        (previous, reason, bids) = (nil, "", [])
    }
}

/// The state of a device's lease at a gateway, for people.
public struct LeaseStatus: Hashable, Sendable {
    public enum Role: String, Hashable, Sendable {
        case owner
        case standby
        case claiming
        case releasing
        /// The centre cannot be reached, and this gateway continues as before.
        case alone
    }

    public var role: Role
    public var owner: String?
    public var epoch: Int64
    /// The reason in words: the bids, and why one won.
    public var reason: String
    public var bids: [LeaseBid]

    public init(role: Role, owner: String?, epoch: Int64, reason: String, bids: [LeaseBid]) {
        (self.role, self.owner, self.epoch) = (role, owner, epoch)
        (self.reason, self.bids) = (reason, bids)
    }
}
