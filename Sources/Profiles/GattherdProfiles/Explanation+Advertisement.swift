import GattherdGATT
import GattherdModel

extension CompiledAdvertisement {
    /// Explains how the last of several payloads of one sender is decoded.
    func explain(_ payloads: [[UInt8]], from sender: Sender?, shared: [Int64]) -> Explanation {
        let maker = ExplanationMaker(self, shared: shared)
        var explanation =
            switch format.envelope {
            case .bthome: unwrapped(payloads, sender, maker)
            case nil: maker.explain(payloads, from: sender)
            }
        guard explanation.rejection == nil else { return explanation }
        do throws(PayloadError) {
            let counter = format.hasValues ? format.counter?.metric.map { descriptor.metrics[$0].name } : nil
            let hasValues = explanation.rows.contains { !$0.value.isEmpty && $0.field != counter }
            if try isSilent(payloads, sender, shared), hasValues { explanation.isRepetition = true }
        } catch {
            explanation.rejection = error
        }
        return explanation
    }

    /// True if the last payload adds no reading.
    ///
    /// - Throws: ``PayloadError`` if the whole frame is rejected, for example because nothing in it is known.
    private func isSilent(_ payloads: [[UInt8]], _ sender: Sender?, _ shared: [Int64]) throws(PayloadError) -> Bool {
        let decoder = FrameDecoder(self, sender, profile: "", shared: shared)
        var samples: [Sample] = []
        for payload in payloads.dropLast() { try? decoder.decode(payload.span, into: &samples) }
        samples.removeAll()
        if let last = payloads.last { try decoder.decode(last.span, into: &samples) }
        return samples.isEmpty
    }

    /// Returns the payload with the decrypted content in place of the encrypted one.
    private func unwrapped(_ payloads: [[UInt8]], _ sender: Sender?, _ maker: ExplanationMaker) -> Explanation {
        var envelope = BTHomeEnvelope(sender, profile: "", stream: descriptor.stream)
        let earlier = payloads.dropLast().compactMap { (try? envelope.open($0.span)) ?? nil }
        let last = payloads.last ?? []
        let opened: [UInt8]?
        do throws(PayloadError) {
            opened = try envelope.open(last.span)
        } catch {
            return Explanation(payload: last, rows: [], leftOver: 0..<last.count, rejection: error)
        }
        let (first, rest) = BTHomeEnvelope.rows(around: last, line: line)
        let start = first.last?.octets.upperBound ?? 0
        guard let opened else {
            let contents = start..<(rest.first?.octets.lowerBound ?? last.count)
            return Explanation(
                payload: last,
                rows: first + rest,
                leftOver: contents,
                rejection: nil,
                isRepetition: true
            )
        }
        let inner = maker.explain(earlier + [opened])
        let left = inner.leftOver.lowerBound + start..<inner.leftOver.upperBound + start
        return Explanation(
            payload: last.prefix(start) + opened + last.dropFirst(start + opened.count),
            rows: first + inner.rows.map { $0.moved(by: start) } + rest,
            leftOver: left.isEmpty ? last.count..<last.count : left,
            rejection: inner.rejection
        )
    }
}

extension Explanation.Row {
    fileprivate func moved(by count: Int) -> Explanation.Row {
        Explanation.Row(
            line: line,
            octets: octets.lowerBound + count..<octets.upperBound + count,
            field: field,
            source: source,
            raw: raw,
            value: value,
            remark: remark
        )
    }
}

extension BTHomeEnvelope {
    /// Returns the rows for the bytes before and after the objects of a decrypted payload.
    fileprivate static func rows(
        around payload: [UInt8],
        line: Int
    ) -> (first: [Explanation.Row], rest: [Explanation.Row]) {
        let device = payload.first ?? 0
        let isEncrypted = device & 1 == 1
        let row = { (octets: Range<Int>, field: String, raw: String, remark: String) in
            Explanation.Row(
                line: line,
                octets: octets,
                field: field,
                source: "envelope",
                raw: raw,
                value: "",
                remark: remark
            )
        }
        let state = isEncrypted ? "encrypted; the bytes are shown as they are inside" : "not encrypted"
        let raw = "\(device) = 0b\(String(device, radix: 2))"
        var first = [row(0..<1, "device", raw, "version \(device >> 5); \(state)")]
        if device & 2 == 2 { first.append(row(1..<7, "address", "", "the device's own")) }
        guard isEncrypted else { return (first, []) }
        let (counter, tag) = (payload.count - 8..<payload.count - 4, payload.count - 4..<payload.count)
        let number = payload[counter].reversed().reduce(0) { $0 << 8 | UInt32($1) }
        return (
            first,
            [
                row(counter, "counter", "\(number)", "grows with each packet"),
                row(tag, "tag", "", "proves that the sender has the bind key"),
            ]
        )
    }
}
