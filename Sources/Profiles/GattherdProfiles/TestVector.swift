import GattherdGATT
import GattherdModel

/// A profile with tests.
protocol TestedProfile: Profile {
    /// The tests of each stream, in the order of the streams.
    var vectors: [[TestVector]] { get }
    /// The models of devices that it serves.
    var models: [ModelDescriptor] { get set }
}

/// A test of a profile: payloads and the expected result.
struct TestVector: Sendable {
    enum Expectation: Sendable {
        /// Exactly these metrics.
        case metrics([(name: String, values: [ExpectedValue])])
        /// A reject whose reason contains this text.
        case reject(String)
    }

    let place: VectorPlace
    let hex: String
    /// The payloads of one connection; the last one is compared.
    let payloads: [[UInt8]]
    /// The sender; `nil` for any.
    let sender: Sender?
    let expectation: Expectation
}

extension TestVector {
    /// Decodes the payload and compares the result.
    func run(_ characteristic: Int, _ profile: any Profile) -> VectorResult {
        let outcome: Result<[NamedSample], PayloadError>
        do throws(PayloadError) {
            outcome = .success(
                try ProfileTools.decode(payloads, characteristic: characteristic, of: profile, from: sender)
            )
        } catch {
            outcome = .failure(error)
        }
        return VectorResult(
            place: place,
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

/// The place of a test in its profile.
package enum VectorPlace: Hashable, Sendable {
    /// The line and column in a declarative profile's file.
    case line(Int, column: Int)
    /// The number of the test in its stream, from 1, in a native profile.
    case number(Int)
}

/// An expected value as written.
struct ExpectedValue: Hashable, Sendable, CustomStringConvertible {
    let text: String
    /// True for an unquoted number, true, false or null.
    let isPlain: Bool

    /// The value, in quotes if it is a text.
    var description: String {
        let isText = !isPlain || !(isNull || number != nil || ["true", "false"].contains(text))
        return isText ? "\"\(text)\"" : text
    }

    /// True if `value` is the expected one; integers and other numbers are compared by value.
    func matches(_ value: SampleValue) -> Bool {
        switch value {
        case .text(let actual): text == actual && !isNull
        case .integer(let actual): isPlain && integer == actual
        case .real(let actual): isPlain && number == actual
        case .boolean(let actual): isPlain && text == (actual ? "true" : "false")
        case .null: isNull
        }
    }

    private var isNull: Bool { isPlain && ["null", "~", ""].contains(text) }
    private var number: Double? { Double(text) ?? Rational(text)?.value }
    /// The value of an integer, also if it is written as `1e3` or `4/2`.
    private var integer: Int64? { Integers.parse(text) ?? number.flatMap { Int64(exactly: $0) } }
}

extension SampleValue {
    /// The value as JSON.
    fileprivate var words: String {
        String(decoding: JSONWriter.bytes { $0.value(self) }, as: UTF8.self)
    }
}
