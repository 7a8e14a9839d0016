package import GattherdGATT
package import GattherdModel

/// An explanation of how a declarative profile decodes one payload.
package struct Explanation: Sendable {
    /// The result of one field.
    package struct Row: Hashable, Sendable {
        /// The field's line in the profile's file.
        package let line: Int
        /// The bytes that the field consumed; may be empty.
        package let octets: Range<Int>
        /// The name of the metric or the flags.
        package let field: String
        /// The type or expression that gives the value.
        package let source: String
        /// The raw value, before scaling.
        package let raw: String
        /// The sample's value as JSON, with its unit.
        package let value: String
        /// The condition that applied, and the conversion of the raw value.
        package let remark: String
    }

    package let payload: [UInt8]
    /// The rows, in decoding order.
    package let rows: [Row]
    /// The bytes that no field consumed; they are ignored.
    package let leftOver: Range<Int>
    /// The reason of the reject; `nil` if the payload decodes.
    package internal(set) var rejection: PayloadError?
    /// True if it repeats an earlier advertisement and adds no reading.
    package internal(set) var isRepetition = false
}

extension ProfileTools {
    /// Explains field by field how the last of several payloads of a connection or a sender is decoded.
    ///
    /// - Returns: The explanation; `nil` for a native profile.
    package static func explain(
        _ payloads: [[UInt8]],
        characteristic: Int,
        of profile: any Profile,
        from sender: Sender? = nil
    ) -> Explanation? {
        guard let profile = profile as? DeclarativeProfile, profile.streams.indices.contains(characteristic) else {
            return nil
        }
        guard profile.isForAdvertisements else {
            return profile.explain(payloads, characteristic)
        }
        return profile.frames[characteristic].explain(payloads, from: sender, shared: profile.sharedAtStart)
    }
}

extension DeclarativeProfile {
    /// Explains the last payload of a characteristic, or the last message in several payloads.
    fileprivate func explain(_ payloads: [[UInt8]], _ characteristic: Int) -> Explanation {
        let decoder = makeDecoder()
        let sequence = MessageSequence(payloads, messages(of: characteristic)) { message in
            var samples: [Sample] = []
            return decoder.rejection(of: message, characteristic: characteristic, into: &samples)
        }
        guard let last = sequence.all.last, last.isWhole else {
            let octets = sequence.all.last?.octets ?? []
            let rejection = sequence.all.last?.rejection
            return Explanation(payload: octets, rows: [], leftOver: 0..<octets.count, rejection: rejection)
        }
        let maker = ExplanationMaker(compiled[characteristic], shared: sharedAtStart)
        return maker.explain(sequence.all.filter(\.isWhole).map(\.octets))
    }
}

/// Describes a decoding trace in words.
struct ExplanationMaker {
    private let program: DecodeProgram
    private let notes: [FieldNote]
    private let metrics: [MetricDescriptor]
    /// The values that all characteristics of the profile share.
    private let shared: [Int64]

    init(_ characteristic: CompiledCharacteristic, shared: [Int64]) {
        self.shared = shared
        program = characteristic.program
        notes = characteristic.notes
        metrics = characteristic.descriptor.metrics
    }

    init(_ frame: CompiledAdvertisement, shared: [Int64]) {
        self.shared = shared
        program = frame.format.program
        notes = frame.notes
        metrics = frame.descriptor.metrics
    }

    func explain(_ payloads: [[UInt8]], from sender: Sender? = nil) -> Explanation {
        var memory = DecodeMemory(for: program, from: sender, profile: "", stream: "")
        memory.shared = shared
        var samples: [Sample] = []
        for payload in payloads.dropLast() { try? program.decode(payload.span, &memory, into: &samples) }
        var payload = payloads.last ?? []
        let trace = DecodeTrace()
        memory.trace = trace
        var rejection: PayloadError?
        do throws(PayloadError) {
            try program.decode(payload.span, &memory, into: &samples)
        } catch {
            rejection = memory.isIgnored ? nil : error
        }
        payload = trace.payload ?? payload
        let taken = trace.entries.map(\.octets.upperBound).max() ?? 0
        return Explanation(
            payload: payload,
            rows: trace.entries.filter(isRelevant).flatMap { rows($0, payload) },
            leftOver: taken..<max(taken, payload.count),
            rejection: rejection
        )
    }

    /// True unless the field is absent in a round of a numbered group, where one of several alternatives applies.
    private func isRelevant(_ entry: DecodeTrace.Entry) -> Bool {
        guard program.numbering != nil, case .absent = entry.outcome else { return true }
        return false
    }

    /// Returns one row, and another one for the reason metric.
    private func rows(_ entry: DecodeTrace.Entry, _ payload: [UInt8]) -> [Explanation.Row] {
        let note = notes[entry.step]
        if case .deltas = program.steps[entry.step].action, case .done = entry.outcome { return sums(entry, note) }
        let values = entry.samples.map { Self.words($0, metrics[$0.metric]) }
        let first = Explanation.Row(
            line: note.line,
            octets: entry.octets,
            field: note.name,
            source: note.source,
            raw: raw(entry, payload),
            value: values.first ?? "",
            remark: remark(entry, note, payload)
        )
        guard entry.samples.count > 1, entry.samples[1].value != .null else { return [first] }
        let reason = Explanation.Row(
            line: note.line,
            octets: entry.octets.upperBound..<entry.octets.upperBound,
            field: metrics[entry.samples[1].metric].name,
            source: "",
            raw: "",
            value: values[1],
            remark: "the reason"
        )
        return [first, reason]
    }

    /// Returns one row for each sum of a difference; the first one has the bytes of all differences.
    private func sums(_ entry: DecodeTrace.Entry, _ note: FieldNote) -> [Explanation.Row] {
        let samples: [Sample?] = entry.samples.isEmpty ? [nil] : entry.samples
        return samples.enumerated().map { index, sample in
            let isFirst = index == 0
            let remarks = [note.condition.map { "present: \($0)" }, "added to the value before"].compactMap(\.self)
            return Explanation.Row(
                line: note.line,
                octets: isFirst ? entry.octets : entry.octets.upperBound..<entry.octets.upperBound,
                field: sample.map { metrics[$0.metric].name } ?? note.name,
                source: note.source,
                raw: "",
                value: sample.map { Self.words($0, metrics[$0.metric]) } ?? "",
                remark: isFirst ? remarks.joined(separator: "; ") : ""
            )
        }
    }

    private static func words(_ sample: Sample, _ metric: MetricDescriptor) -> String {
        let value = String(decoding: JSONWriter.bytes { $0.value(sample.value) }, as: UTF8.self)
        return metric.unit.map { sample.value == .null ? value : "\(value) \($0)" } ?? value
    }

    // MARK: - Raw values

    private func raw(_ entry: DecodeTrace.Entry, _ payload: [UInt8]) -> String {
        guard case .done = entry.outcome else { return "" }
        if let number = entry.number { return "\(number)" }
        let step = program.steps[entry.step]
        guard case .read(let type) = step.action else { return "" }
        return raw(type, Array(payload[entry.octets]), isFlags: step.metric == nil)
    }

    private func raw(_ type: FieldType, _ octets: [UInt8], isFlags: Bool) -> String {
        var cursor = PayloadCursor(octets.span)
        switch type {
        case .integer(let width, let isSigned, let isBigEndian):
            guard
                let pattern = try? isBigEndian
                    ? cursor.unsignedBigEndian(octets: width) : cursor.unsigned(octets: width)
            else { return "" }
            let shift = Int64(64 - 8 * width)
            let number = isSigned ? "\((Int64(bitPattern: pattern) << shift) >> shift)" : "\(pattern)"
            return isFlags ? "\(number) = 0b\(String(pattern, radix: 2))" : number
        case .sfloat: return (try? cursor.u16()).map { Self.words(IEEE11073Number(sfloat: $0)) } ?? ""
        case .float: return (try? cursor.u32()).map { Self.words(IEEE11073Number(float: $0)) } ?? ""
        case .real, .boolean, .dateTime, .date, .uuid, .text, .terminatedText, .wideText, .decimal, .octets: return ""
        }
    }

    private static func words(_ number: IEEE11073Number) -> String {
        guard case .finite(let mantissa, let exponent) = number else { return number.reason ?? "" }
        return "\(mantissa) × 10^\(exponent)"
    }

    // MARK: - Remarks

    private func remark(_ entry: DecodeTrace.Entry, _ note: FieldNote, _ payload: [UInt8]) -> String {
        switch entry.outcome {
        case .absent: return "absent: \(note.condition ?? "its condition") is false"
        case .failed: return note.name == "ignored" ? "the payload is ignored" : "rejected here"
        case .round(let number): return round(number, program.steps[entry.step], note)
        case .padding: return "skipped: the group is longer than its fields"
        case .done: break
        }
        let conversion = program.conversions[program.steps[entry.step].conversion]
        var words = note.condition.map { ["present: \($0)"] } ?? []
        if !conversion.expected.isEmpty {
            words.append("must be " + conversion.expected.map(String.init).joined(separator: " or "))
        }
        words += meaning(entry, conversion, note, payload)
        if let range = conversion.range { words.append("within \(range.lowerBound) to \(range.upperBound)") }
        return words.joined(separator: "; ")
    }

    /// Describes the start of a group, which has no rounds without `repeat`.
    private func round(_ number: Int, _ step: DecodeProgram.Step, _ note: FieldNote) -> String {
        guard case .group = step.action, case .once = step.count, let condition = note.condition else {
            return "round \(number)"
        }
        return "present: \(condition)"
    }

    /// Describes the conversion of the raw value.
    private func meaning(
        _ entry: DecodeTrace.Entry,
        _ conversion: Conversion,
        _ note: FieldNote,
        _ payload: [UInt8]
    ) -> [String] {
        let step = program.steps[entry.step]
        guard step.metric != nil else { return [] }
        guard let value = entry.samples.first?.value else { return [absence(of: step)] }
        if value == .null {
            if entry.samples.dropFirst().contains(where: { $0.value != .null }) { return ["unknown: see the reason"] }
            let isListed = !conversion.unknown.isEmpty && conversion.labels.isEmpty
            return [isListed ? "unknown" : conversion.labels.isEmpty ? "not a number" : "no label, or unknown"]
        }
        if !conversion.labels.isEmpty { return ["label of \(raw(entry, payload))"] }
        if !conversion.set.isEmpty { return ["labels of the bits that are set"] }
        return note.arithmetic.isEmpty ? [] : [note.arithmetic]
    }

    private func absence(of step: DecodeProgram.Step) -> String {
        if case .increase = step.action { return "nothing to compare with yet, or outside its range" }
        return "nothing to count"
    }
}
