import GattherdModel

/// A program while its fields are compiled.
struct DecodeProgramDraft {
    private(set) var steps: [DecodeProgram.Step] = []
    private(set) var conversions: [Conversion] = []
    private(set) var catalogues: [ObjectCatalogue] = []
    private(set) var deltas: [DeltaRule] = []
    var expressions = ExpressionNodes()
    var length = DecodeProgram.Length.any
    var checksum: Checksum?
    /// The decryption, and the index of its step.
    private(set) var decryption: (rule: Decryption, step: Int)?
    /// The numbering of metrics that a payload can have several of.
    var numbering: Numbering?
    /// The number of values from ``SharedValues``.
    var sharedCount = 0
    /// The registers to share with other characteristics, and the indices of the shared values.
    private(set) var shares: [(register: Int, shared: Int)] = []
    /// The number of registers.
    var registerCount = 0
    /// The number of steps with state from earlier payloads.
    private(set) var increaseCount = 0

    mutating func add(_ step: DecodeProgram.Step) {
        steps.append(step)
        if case .increase = step.action { increaseCount += 1 }
    }

    mutating func add(_ conversion: Conversion) -> Int {
        conversions.append(conversion)
        return conversions.count - 1
    }

    /// Adds a step that decrypts the rest of the payload; a program has one at most.
    mutating func add(_ rule: Decryption, _ step: DecodeProgram.Step) {
        decryption = (rule, steps.count)
        steps.append(step)
    }

    /// Adds an empty object catalogue and returns its index.
    mutating func add(_ catalogue: ObjectCatalogue) -> Int {
        catalogues.append(catalogue)
        return catalogues.count - 1
    }

    mutating func add(_ rule: DeltaRule) -> Int {
        deltas.append(rule)
        return deltas.count - 1
    }

    /// Adds a kind, decoded by the steps from `first` on, to a catalogue; returns false if its number is known.
    mutating func add(kind number: UInt64, from first: Int, to catalogue: Int) -> Bool {
        catalogues[catalogue].add(ObjectCatalogue.Kind(number: number, steps: first..<steps.count))
    }

    /// Shares a register with other characteristics.
    mutating func share(_ register: Int, as index: Int) { shares.append((register, index)) }

    /// Sets the end of a group after its last step.
    mutating func close(group index: Int, size: Int?) {
        steps[index].action = .group(end: steps.count, size: size)
    }

    /// Sets the end of a catalogue's objects after the last step.
    mutating func close(catalogue index: Int) { catalogues[index].end = steps.count }

    /// Removes all reason metrics.
    mutating func removeReasons() {
        for index in steps.indices { steps[index].reason = nil }
    }
}
