import GattherdModel

/// A generator of repeatable random numbers.
struct RecordRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state &* 0x2545_F491_4F6C_DD1D
    }
}

/// A device with a ring of stored records, in virtual time.
///
/// The device answers a Record Access Control Point, and three requests of its own with a number of four octets:
/// records from a number on, those since a time in seconds, and a block of records by its index.
struct RecordingDevice {
    struct Record: Hashable {
        /// The identity that the test knows.
        let identity: Int
        let number: Int64
        /// The device's clock, in whole seconds.
        let reading: Int64
        /// The right time in microseconds.
        let time: Int64
    }

    /// The answer to a request.
    struct Answer {
        var records: [Record] = []
        /// The value that ends them; `nil` for a block.
        var end: [UInt8]?
        /// The index of the block's first record.
        var index: Int64 = 0
    }

    static let numberRequest = WriteTemplate("AA {next:u32le}")
    static let timeRequest = WriteTemplate("BB {since:u32le}")
    static let blockRequest = WriteTemplate("CC {index:u32le}")
    static let end = BytePattern("FF")
    /// The records of a block.
    private static let blockSize = 5

    var ring: [Record] = []
    var capacity = Int.max
    var numberBits: Int64 = 32
    var nextNumber: Int64 = 0
    /// The device's clock minus the right time, in microseconds.
    var clockError: Int64 = 0
    var isNewestFirst = false
    /// True if it knows the operator "within range of".
    var hasRanges = true
    /// True if it answers each request with a number as if it had no such record.
    var hidesNumbers = false
    /// True if the index of a block is a record's number, and not its place in the ring.
    var isNumbered = true
    /// True if it dates its records by the time that it is told.
    var isTold = false
    /// The requests that it will not complete.
    var refusals = 0
    private var identity = 0

    /// Makes a record; returns the one that it overwrites.
    @discardableResult
    mutating func record(at time: Int64) -> Record? {
        ring.append(
            Record(identity: identity, number: nextNumber, reading: (time + clockError) / 1_000_000, time: time)
        )
        identity += 1
        nextNumber = (nextNumber + 1) % (1 << numberBits)
        return ring.count > capacity ? ring.removeFirst() : nil
    }

    var made: Int { identity }

    /// Loses all records and starts to count anew.
    mutating func reset() {
        ring.removeAll()
        nextNumber = 0
    }

    /// The time of a record that it sends, in seconds.
    func reading(of record: Record) -> Int64 { isTold ? (record.time + clockError) / 1_000_000 : record.reading }

    mutating func answer(_ request: [UInt8]) -> Answer {
        let number = request.dropFirst().reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) }
        switch request.first {
        case 0xAA: return Answer(records: ordered(ring.filter { $0.number >= number }), end: [0xFF])
        case 0xBB: return Answer(records: ordered(ring.filter { reading(of: $0) > number }), end: [0xFF])
        case 0xCC: return block(at: number)
        case 1 where refusals > 0:
            refusals -= 1
            return Answer(end: [6, 0, 1, 8])
        default: return accessControlPoint(request)
        }
    }

    private func ordered(_ records: [Record]) -> [Record] { isNewestFirst ? records.reversed() : records }

    private func block(at index: Int64) -> Answer {
        let start = isNumbered ? ring.firstIndex { $0.number == index } : Int(exactly: index)
        guard let start, ring.indices.contains(start) else { return Answer(index: index) }
        return Answer(records: Array(ring[start...].prefix(Self.blockSize)), index: index)
    }

    private func accessControlPoint(_ request: [UInt8]) -> Answer {
        let operands = request.dropFirst(3)
        let number = { (octets: ArraySlice<UInt8>) in octets.reversed().reduce(Int64(0)) { $0 << 8 | Int64($1) } }
        let chosen: [Record]
        switch request.dropFirst().first {
        case 3 where hidesNumbers, 4 where hidesNumbers: chosen = []
        case 3: chosen = ring.filter { $0.number >= number(operands) }
        case 4 where !hasRanges: return Answer(end: [6, 0, request.first ?? 0, 4])
        case 4:
            let (least, most) = (operands.prefix(operands.count / 2), operands.suffix(operands.count / 2))
            chosen = ring.filter { $0.number >= number(least) && $0.number <= number(most) }
        default: chosen = ring
        }
        let count = UInt32(chosen.count)
        switch request.first {
        case 4: return Answer(end: [5, 0] + (0..<4).map { UInt8(truncatingIfNeeded: count >> UInt32(8 * $0)) })
        case 1: return Answer(records: ordered(chosen), end: [6, 0, 1, chosen.isEmpty ? 6 : 1])
        default: return Answer(end: [6, 0, request.first ?? 0, 1])
        }
    }
}
