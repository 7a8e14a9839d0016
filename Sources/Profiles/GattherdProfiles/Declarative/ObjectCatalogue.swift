import GattherdGATT
import GattherdModel

/// The kinds of objects in a payload: each begins with the number of its kind and perhaps its size.
struct ObjectCatalogue: Sendable {
    /// An unsigned integer of the payload.
    struct Number: Hashable, Sendable {
        let octets: Int
        let isBigEndian: Bool
    }

    /// A kind of object, and the steps that decode its contents.
    struct Kind: Hashable, Sendable {
        let number: UInt64
        let steps: Range<Int>
    }

    let number: Number
    /// The size of the contents in bytes; `nil` if the kind determines it.
    let size: Number?
    /// The register of the size.
    let sizeRegister: Int?
    /// The kinds, ordered by number.
    private(set) var kinds: [Kind] = []
    /// The step after all objects.
    var end = 0

    init(number: Number, size: Number?, sizeRegister: Int?) {
        self.number = number
        self.size = size
        self.sizeRegister = sizeRegister
    }

    /// Adds a kind; returns false if its number is known.
    mutating func add(_ kind: Kind) -> Bool {
        guard steps(of: kind.number) == nil else { return false }
        kinds.insert(kind, at: kinds.firstIndex { $0.number > kind.number } ?? kinds.count)
        return true
    }

    /// The number of bytes before the contents of an object.
    var headerOctets: Int { number.octets + (size?.octets ?? 0) }

    /// Returns the steps of a kind; `nil` for an unknown one.
    func steps(of number: UInt64) -> Range<Int>? {
        var (low, high) = (0, kinds.count)
        while low < high {
            let middle = (low + high) / 2
            if kinds[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low < kinds.count && kinds[low].number == number ? kinds[low].steps : nil
    }
}

extension DecodeProgram {
    /// Decodes objects until the payload ends, except for padding; each consumes bytes, so that the loop ends.
    func objects(
        _ index: Int,
        _ catalogue: ObjectCatalogue,
        _ cursor: inout PayloadCursor,
        _ memory: inout DecodeMemory,
        _ samples: inout [Sample],
        from start: Int
    ) throws(PayloadError) {
        while cursor.left > 0 {
            let header = cursor.offset
            if try cursor.skipPadding(shorterThan: catalogue.headerOctets) {
                memory.trace?.pad(group: index, header..<cursor.offset)
                return
            }
            let number = try cursor.number(catalogue.number)
            var size: Int?
            if let width = catalogue.size { size = Int(clamping: try cursor.number(width)) }
            let first = cursor.offset
            memory.trace?.enter(group: index, header..<first)
            var rest = cursor.left
            if let steps = catalogue.steps(of: number) {
                clear(steps, &memory)
                if let register = catalogue.sizeRegister { memory.store(Int64(size ?? 0), in: register) }
                try run(steps, &cursor, &memory, &samples, from: start)
                rest = 0
            }
            let reached = cursor.offset
            try skipRest(of: size ?? reached - first + rest, from: first, &cursor)
            memory.trace?.pad(group: index, reached..<cursor.offset)
        }
    }

    /// Skips the bytes of an object that its fields left.
    private func skipRest(of size: Int, from first: Int, _ cursor: inout PayloadCursor) throws(PayloadError) {
        let left = size - (cursor.offset - first)
        guard left >= 0 else {
            throw .invalid(reason: "the object at offset \(first) is longer than its size of \(size) bytes")
        }
        try cursor.skip(left)
    }
}

extension PayloadCursor {
    fileprivate mutating func number(_ number: ObjectCatalogue.Number) throws(PayloadError) -> UInt64 {
        number.isBigEndian ? try unsignedBigEndian(octets: number.octets) : try unsigned(octets: number.octets)
    }

    /// Skips zeros that are too short for another object; returns false if there are none.
    fileprivate mutating func skipPadding(shorterThan count: Int) throws(PayloadError) -> Bool {
        guard left < count else { return false }
        var rest = self
        guard try rest.unsigned(octets: left) == 0 else { return false }
        try skip(left)
        return true
    }
}
