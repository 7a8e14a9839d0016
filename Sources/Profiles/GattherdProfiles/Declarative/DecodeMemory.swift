import GattherdModel

/// What the decoder of one characteristic keeps on one connection.
struct DecodeMemory {
    /// Whole numbers of the payload that is being decoded, for later fields.
    var registers: [Int64]
    /// Which of ``registers`` the payload has.
    var isPresent: [Bool]
    /// What earlier payloads said, for what is computed from two of them.
    var increases: [Increase]
    /// The values that the characteristics of a profile have in common.
    var shared: [Int64] = []
    /// The first value of the payload that cannot be, in words.
    private(set) var impossible: String?
    /// The metrics whose last value was a reason, this payload included.
    private var openReasons: Set<Int> = []
    /// The same as the last payload left it that was not rejected: nobody was told what a rejected one said.
    private var toldReasons: Set<Int> = []
    /// Who wants to know what is done; `nil` when nobody does.
    var trace: DecodeTrace?

    init(for program: DecodeProgram) {
        registers = Array(repeating: 0, count: program.registerCount)
        isPresent = Array(repeating: false, count: program.registerCount)
        increases = Array(repeating: Increase(), count: program.increaseCount)
    }

    /// Forgets the last payload, but not what computed metrics need of it.
    mutating func begin(octets: Int, sharing count: Int) {
        impossible = nil
        openReasons = toldReasons
        for register in registers.indices { forget(register) }
        registers[FieldNames.octetsRegister] = Int64(octets)
        for (index, value) in shared.prefix(count).enumerated() { keep(value, in: FieldNames.firstShared + index) }
    }

    /// The payload was not rejected.
    mutating func end() {
        toldReasons = openReasons
    }

    /// True if the reason, which may be null, is news for the metric.
    mutating func tells(_ reason: SampleValue, _ metric: Int) -> Bool {
        guard reason != .null else { return openReasons.remove(metric) != nil }
        openReasons.insert(metric)
        return true
    }

    /// Records a value that cannot be, for the reject of a payload that says nothing else.
    mutating func note(impossible reason: SampleValue, _ name: String) {
        guard impossible == nil, case .text(let words) = reason else { return }
        impossible = "\(name) is \(words)"
    }

    mutating func forget(_ register: Int) {
        registers[register] = 0
        isPresent[register] = false
    }

    mutating func keep(_ value: Int64, in register: Int) {
        registers[register] = value
        isPresent[register] = true
    }
}

/// How a counter grows from payload to payload, over the clock that the device sends along.
struct Increase {
    /// What is counted, and over what.
    struct Rule: Hashable, Sendable {
        let counter: Int
        /// How many bits the counter has before it starts again at 0; at most 56.
        let counterBits: Int64
        let clock: Int?
        let clockBits: Int64
        /// A whole number that the growth is multiplied by.
        let factor: Int?
        /// After so many payloads in which the clock stands still, the rate is 0.
        let patience: Int
    }

    private var counter: Int64 = 0
    private var clock: Int64 = 0
    /// Payloads in which the clock stood still.
    private var pauses = 0
    /// True once there is something to compare with.
    private var isRunning = false

    /// What the counter grew by, or its growth for each tick of the clock; `nil` while that cannot be told.
    mutating func value(_ memory: (counter: Int64, clock: Int64), _ rule: Rule) -> (over: Int64, under: Int64)? {
        let growth = Self.difference(memory.counter, counter, rule.counterBits)
        let time = rule.clock == nil ? 1 : Self.difference(memory.clock, clock, rule.clockBits)
        guard time != 0 || !isRunning else { return pause(rule.patience) }
        let isComparable = isRunning && pauses < rule.patience
        (counter, clock, pauses, isRunning) = (memory.counter, memory.clock, 0, true)
        return isComparable ? (growth, time) : nil
    }

    /// Nothing has happened since the last payload; after a while that is a rate of 0, and the clock may have gone
    /// round since, so that what comes next is compared with nothing.
    private mutating func pause(_ patience: Int) -> (over: Int64, under: Int64)? {
        pauses = min(pauses + 1, patience)
        return pauses < patience ? nil : (0, 1)
    }

    private static func difference(_ new: Int64, _ old: Int64, _ bits: Int64) -> Int64 {
        (new &- old) & ((1 << bits) - 1)
    }
}
