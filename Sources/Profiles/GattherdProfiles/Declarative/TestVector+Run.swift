import GattherdGATT
import GattherdModel
import GattherdYAML

extension TestVector {
    /// Decodes the payload and compares the result.
    func run(_ characteristic: Int, _ profile: DeclarativeProfile) -> VectorResult {
        let outcome: Result<[NamedSample], PayloadError>
        do throws(PayloadError) {
            outcome = .success(
                try ProfileTools.decode(payloads, characteristic: characteristic, of: profile, from: sender)
            )
        } catch {
            outcome = .failure(error)
        }
        return VectorResult(
            line: position.line,
            column: position.column,
            stream: profile.streams[characteristic].name,
            hex: hex,
            sender: sender,
            outcome: outcome,
            failure: failure(outcome)
        )
    }

    private func failure(_ outcome: Result<[NamedSample], PayloadError>) -> String? {
        switch (expectation, outcome) {
        case (.reject(let text), .failure(let error)):
            error.description.contains(text) ? nil : "rejected for another reason: \(error)"
        case (.reject, .success(let samples)):
            "expected a reject, decoded \(Self.text(samples))"
        case (.metrics, .failure(let error)):
            "rejected: \(error)"
        case (.metrics(let expected), .success(let samples)):
            difference(expected, samples)
        }
    }

    private func difference(_ expected: [(name: String, values: [ExpectedValue])], _ samples: [NamedSample]) -> String?
    {
        for (name, values) in expected {
            let actual = samples.filter { $0.metric.name == name }.map(\.value)
            let isEqual = values.count == actual.count && zip(values, actual).allSatisfy { $0.matches($1) }
            guard isEqual else {
                return "\(name): expected \(values), decoded [\(actual.map(\.words).joined(separator: ", "))]"
            }
        }
        let extra = samples.filter { sample in
            !expected.contains { $0.name == sample.metric.name } && !isSilentReason(sample)
        }
        return extra.isEmpty ? nil : "decoded also \(Self.text(extra))"
    }

    /// True for a null reason beside a known value.
    private func isSilentReason(_ sample: NamedSample) -> Bool {
        sample.value == .null && sample.metric.name.hasSuffix("_reason")
    }

    private static func text(_ samples: [NamedSample]) -> String {
        samples.map { "\($0.metric.name) \($0.value.words)" }.joined(separator: ", ")
    }
}

extension SampleValue {
    /// The value as JSON.
    fileprivate var words: String {
        String(decoding: JSONWriter.bytes { $0.value(self) }, as: UTF8.self)
    }
}
