import GattherdGATT
import GattherdGateway
import GattherdModel
import GattherdProfiles

/// A profile as a page in Markdown.
struct ProfileDocument {
    let text: String

    init(_ profile: any Profile) {
        let facts = ProfileFacts(profile)
        var blocks = ["# \(profile.name)", Self.escaped(profile.title) + ".", Self.escaped(facts.serving)]
        for section in facts.sections + [Self.vectors(profile)] where !section.rows.isEmpty {
            blocks.append("## \(section.title)")
            blocks.append(Self.table(section))
        }
        blocks.append("## SQL")
        blocks.append("```sql\n" + facts.queries.joined(separator: "\n") + "\n```")
        text = blocks.joined(separator: "\n\n")
    }

    private static func table(_ section: ProfileFacts.Section) -> String {
        let rule = section.header.map { _ in "---" }
        let lines = [section.header, rule] + section.rows.map { $0.map(escaped) }
        return lines.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }

    /// Returns a text with Markdown's characters escaped.
    private static func escaped(_ text: String) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if "|*_<>`[]\\".unicodeScalars.contains(scalar) { escaped.append("\\") }
            escaped.append(scalar)
        }
        return String(escaped)
    }

    private static func vectors(_ profile: any Profile) -> ProfileFacts.Section {
        let rows = ProfileTools.runVectors(of: profile).map { [$0.stream, bytes($0), meaning(of: $0)] }
        return ProfileFacts.Section(title: "Test vectors", header: ["stream", "bytes", "meaning"], rows: rows)
    }

    private static func bytes(_ vector: VectorResult) -> String {
        guard let sender = vector.sender else { return vector.hex }
        return "\(vector.hex), from \(sender.address)" + (sender.key == nil ? "" : " with a bind key")
    }

    private static func meaning(of vector: VectorResult) -> String {
        switch vector.outcome {
        case .success(let samples) where samples.isEmpty: "nothing new"
        case .success(let samples):
            samples.map { "\($0.metric.name) \(SampleText.words($0))" }.joined(separator: ", ")
        case .failure(let error): "rejected: \(error.description)"
        }
    }
}
