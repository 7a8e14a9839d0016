/// One gateway: a host with a bus of its own, and the place of its adapters.
public struct GatewaySpec: Hashable, Sendable {
    public var name: String
    public var position: ScenarioPosition
    public var adapters = [AdapterSpec()]

    public init(name: String, position: ScenarioPosition) {
        self.name = name
        self.position = position
    }
}

/// The propagation of radio waves between positions.
public struct AirSpec: Hashable, Sendable {
    /// Bodies that come and go between peripherals and gateways.
    public struct Bodies: Hashable, Sendable {
        /// The attenuation by a body, in dB.
        public var attenuation: Double
        /// The share of the time with a body between a peripheral and a gateway.
        public var share = 0.2
        /// The time that a body stays, and a free line of sight as well.
        public var stay = Duration.seconds(5)

        public init(attenuation: Double) {
            self.attenuation = attenuation
        }
    }

    /// The number that determines the noise and the times of the bodies.
    public var seed: UInt64 = 1
    /// The exponent of the path loss: 2 in the open, more between walls.
    public var exponent = 2.5
    /// The strength of the weakest signal that adapters receive, in dBm.
    public var sensitivity: Int16 = -95
    /// The standard deviation of the strength of single advertisements, in dB.
    public var noise = 2.0
    public var bodies: Bodies?

    public init() {}
}

/// A place on the plan of a site, in metres.
public struct ScenarioPosition: Hashable, Sendable {
    public var x: Double
    public var y: Double

    public init(x: Double, y: Double) {
        self.x = x
        self.y = y
    }

    func distance(to other: ScenarioPosition) -> Double {
        ((x - other.x) * (x - other.x) + (y - other.y) * (y - other.y)).squareRoot()
    }

    /// The distance to the closest point of a straight way.
    func distance(toWayFrom start: ScenarioPosition, to end: ScenarioPosition) -> Double {
        let (dx, dy) = (end.x - start.x, end.y - start.y)
        let square = dx * dx + dy * dy
        let share = square > 0 ? ((x - start.x) * dx + (y - start.y) * dy) / square : 0
        return distance(to: start.moved(towards: end, by: min(max(share, 0), 1)))
    }

    /// The position after a share of the way to another.
    func moved(towards other: ScenarioPosition, by share: Double) -> ScenarioPosition {
        ScenarioPosition(x: x + (other.x - x) * share, y: y + (other.y - y) * share)
    }
}

/// A position of a walking peripheral at a time since the start.
public struct Waypoint: Hashable, Sendable {
    public var time: Duration
    public var position: ScenarioPosition

    public init(time: Duration, position: ScenarioPosition) {
        self.time = time
        self.position = position
    }
}
