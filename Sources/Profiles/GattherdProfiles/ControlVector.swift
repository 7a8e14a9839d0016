import GattherdGATT
package import GattherdModel
import GattherdYAML

/// A test of a control: a value, and the bytes that are written or the reason why it is refused.
struct ControlVector: Sendable {
    enum Expectation: Sendable {
        case octets([UInt8])
        /// A refusal whose reason contains this text.
        case refusal(String)
    }

    let place: VectorPlace
    let value: ControlValue
    let expectation: Expectation

    /// Encodes the value and compares the bytes.
    func run(_ control: Int, _ profile: any Profile) -> ControlVectorResult {
        let written: Result<[UInt8], ControlError>
        do throws(ControlError) {
            written = .success(try profile.encode(control: control, value: value))
        } catch {
            written = .failure(error)
        }
        return ControlVectorResult(
            place: place,
            control: profile.controls[control].name,
            value: value,
            written: written,
            failure: failure(written)
        )
    }

    private func failure(_ written: Result<[UInt8], ControlError>) -> String? {
        switch (expectation, written) {
        case (.octets(let expected), .success(let octets)):
            expected == octets
                ? nil : "expected \(Hexadecimal.text(expected.span)), written \(Hexadecimal.text(octets.span))"
        case (.octets, .failure(let error)): "refused: \(error)"
        case (.refusal(let text), .failure(let error)):
            error.description.contains(text) ? nil : "refused for another reason: \(error)"
        case (.refusal, .success(let octets)): "expected a refusal, written \(Hexadecimal.text(octets.span))"
        }
    }
}

/// The result of one test of a control.
package struct ControlVectorResult: Sendable {
    package let place: VectorPlace
    package let control: String
    package let value: ControlValue
    /// The written bytes, or the reason why the value is refused.
    package let written: Result<[UInt8], ControlError>
    /// The difference; `nil` if the test passed.
    package let failure: String?
}

/// Reads `tests` of controls.
enum ControlVectorReader {
    static func read(_ control: MappingReader) -> [ControlVector] {
        control.elements("tests").compactMap { vector($0, control.findings) }
    }

    private static func vector(_ node: YAMLNode, _ findings: ProfileFindings) -> ControlVector? {
        guard let reader = MappingReader(node, .controlTest, findings: findings) else { return nil }
        defer { reader.finish() }
        let text = reader.value("set", .words)
        let octets = reader.value("hex", .octets)
        let reason = reader.value("reject", .words)
        guard reader.has("hex") != reader.has("reject") else {
            reader.report("a test of a control has either 'hex', the written bytes, or 'reject'")
            return nil
        }
        let refusal = reason.map { ControlVector.Expectation.refusal($0 == "true" ? "" : $0) }
        guard let expectation = octets.map({ .octets($0) }) ?? refusal else { return nil }
        return ControlVector(
            place: .line(node.position.line, column: node.position.column),
            value: ControlValue(words: text ?? ""),
            expectation: expectation
        )
    }
}
