/// The models of peripherals; only the most recently used ones are kept.
///
/// The radio may hear any number of addresses. A model of a peripheral that is connected or reconnecting is kept too.
/// One that is not kept is still found while something else holds it, so that a peripheral never has two.
@MainActor struct PeripheralModels {
    private struct Entry {
        /// The model while it is kept, else `nil`.
        var kept: PeripheralModel?
        weak var model: PeripheralModel?
        /// The number of the last use of any model.
        var lastUse: UInt64
    }

    /// The number of models at which unused ones are released; the newest half of them is kept.
    static let limit = 2000

    private var entries: [PeripheralID: Entry] = [:]
    private var uses: UInt64 = 0
    /// The number of entries at which unused ones are released next.
    private var threshold = limit

    /// The model of a peripheral, if it has one.
    subscript(id: PeripheralID) -> PeripheralModel? { entries[id]?.model }

    /// All models that are kept or held.
    var all: [PeripheralModel] { entries.values.compactMap(\.model) }

    /// Returns the model of a peripheral, which is created if necessary.
    mutating func model(of peripheral: Peripheral) -> PeripheralModel {
        if entries.count >= threshold { releaseUnused() }
        let model = entries[peripheral.id]?.model ?? PeripheralModel(peripheral)
        uses += 1
        entries[peripheral.id] = Entry(kept: model, model: model, lastUse: uses)
        return model
    }

    private mutating func releaseUnused() {
        let unused = entries.filter { $0.value.kept?.isInUse == false }
            .sorted { $0.value.lastUse < $1.value.lastUse }
            .map(\.key)
        for id in unused.dropLast(Self.limit / 2) { entries[id]?.kept = nil }
        entries = entries.filter { $0.value.model != nil }
        threshold = max(Self.limit, entries.count * 2)
    }
}
