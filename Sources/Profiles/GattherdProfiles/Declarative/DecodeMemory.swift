import GattherdModel

/// The state of one characteristic's decoder on one connection.
struct DecodeMemory {
    /// The integers of the current payload, for later fields.
    var registers: [Int64]
    /// True for each of ``registers`` that the payload has.
    var isPresent: [Bool]
    /// The state of counters, for values computed from two payloads.
    var increases: [Increase]
    /// The state of counters after the last accepted payload; rejected and repeated payloads do not change it.
    private var acceptedIncreases: [Increase]
    /// The values that the characteristics of a profile share.
    var shared: [Int64] = []
    /// A description of the first impossible value of the payload.
    private(set) var impossible: String?
    /// The metrics whose last reason is not null, this payload included.
    private var currentReasons: Set<Int> = []
    /// The metrics whose last reason is not null, after the last accepted payload.
    private var acceptedReasons: Set<Int> = []
    /// The state of the decryption; `nil` without one.
    var decryption: DecryptionMemory?
    /// True if the profile ignores the payload.
    var isIgnored = false
    /// The trace to write, if any.
    var trace: DecodeTrace?

    init(for program: DecodeProgram) {
        registers = Array(repeating: 0, count: program.registerCount)
        isPresent = Array(repeating: false, count: program.registerCount)
        increases = Array(repeating: Increase(), count: program.increaseCount)
        acceptedIncreases = increases
    }

    /// Makes the state of the decoder of one sender's advertisements.
    init(for program: DecodeProgram, from sender: Sender?, profile: String, stream: String) {
        self.init(for: program)
        if program.decryption != nil { decryption = DecryptionMemory(sender, profile: profile, stream: stream) }
    }

    /// Resets the registers for a new payload and keeps the state of computed metrics.
    mutating func startPayload(octets: Int, sharing count: Int) {
        impossible = nil
        isIgnored = false
        decryption?.startPayload()
        currentReasons = acceptedReasons
        for index in increases.indices { increases[index] = acceptedIncreases[index] }
        for register in registers.indices { clear(register) }
        registers[FieldNames.octetsRegister] = Int64(octets)
        for (index, value) in shared.prefix(count).enumerated() { store(value, in: FieldNames.firstShared + index) }
    }

    /// Accepts the payload.
    mutating func acceptPayload() {
        acceptedReasons = currentReasons
        for index in increases.indices { acceptedIncreases[index] = increases[index] }
    }

    /// Returns true if a reason must be emitted; null only resets an emitted one.
    mutating func mustEmit(_ reason: SampleValue, _ metric: Int) -> Bool {
        guard reason != .null else { return currentReasons.remove(metric) != nil }
        currentReasons.insert(metric)
        return true
    }

    /// Records an impossible value, for the reject of a payload without other values.
    mutating func recordImpossible(_ reason: SampleValue, _ name: String) {
        guard impossible == nil, case .text(let words) = reason else { return }
        impossible = "\(name) is \(words)"
    }

    mutating func clear(_ register: Int) {
        registers[register] = 0
        isPresent[register] = false
    }

    mutating func store(_ value: Int64, in register: Int) {
        registers[register] = value
        isPresent[register] = true
    }
}

/// The growth of a counter between payloads, per tick of the device's clock.
struct Increase {
    /// The counter, the clock and their widths.
    struct Rule: Hashable, Sendable {
        let counter: Int
        /// The width of the counter in bits, at most 56.
        let counterBits: Int64
        let clock: Int?
        let clockBits: Int64
        /// The register of an integer factor.
        let factor: Int?
        /// The number of payloads with an unchanged clock after which the rate is 0.
        let stillCount: Int
    }

    private var counter: Int64 = 0
    private var clock: Int64 = 0
    /// The number of payloads with an unchanged clock.
    private var pauses = 0
    /// True once there is a payload for comparison.
    private var isRunning = false

    /// Returns the growth of the counter, or its growth per tick of the clock; `nil` while unknown.
    mutating func value(_ memory: (counter: Int64, clock: Int64), _ rule: Rule) -> (over: Int64, under: Int64)? {
        let growth = Self.difference(memory.counter, counter, rule.counterBits)
        let time = rule.clock == nil ? 1 : Self.difference(memory.clock, clock, rule.clockBits)
        guard time != 0 || !isRunning else { return pause(rule.stillCount) }
        let isComparable = isRunning && pauses < rule.stillCount
        (counter, clock, pauses, isRunning) = (memory.counter, memory.clock, 0, true)
        return isComparable ? (growth, time) : nil
    }

    /// Counts a payload with an unchanged clock.
    ///
    /// After `stillCount` of them the rate is 0, and the clock may have wrapped, so that the next payload is not
    /// compared.
    private mutating func pause(_ stillCount: Int) -> (over: Int64, under: Int64)? {
        pauses = min(pauses + 1, stillCount)
        return pauses < stillCount ? nil : (0, 1)
    }

    private static func difference(_ new: Int64, _ old: Int64, _ bits: Int64) -> Int64 {
        (new &- old) & ((1 << bits) - 1)
    }
}
