import GattherdModel
import GattherdProfiles

extension CommandSpec {
    static let profileModels = CommandSpec(
        name: "profile models",
        summary: "list the models of devices that the profiles recognise",
        positionals: [PositionalSpec(name: "TEXT", isOptional: true)],
        options: profileSources + [.flag("markdown", "write a page in Markdown")],
        details: """
            With TEXT, only models whose brand, name or profile contains it, in capital or small letters. Other devices may work
            with these profiles too: those that send the same format, or have the same services.
            \(profileWhence)
            """,
        examples: ["gattherd profile models govee"],
        run: { (arguments) throws(CommandFailure) in
            let catalogue = ModelCatalogue(try ProfileCommands(arguments).registry, matching: arguments.positional(0))
            Terminal.say(arguments.has("markdown") ? catalogue.page : catalogue.table)
        }
    )
}

/// The models that profiles recognise.
struct ModelCatalogue {
    private struct Row {
        let brand: String
        let model: String
        let reads: String
        let how: String
        let profile: String
        let tested: String
    }

    /// The maximum number of metrics that a row names.
    private static let maximumMetrics = 10

    private let rows: [Row]
    private let profileCount: Int
    /// The number of models; several profiles may serve one.
    private let modelCount: Int

    init(_ registry: ProfileRegistry, matching text: String? = nil) {
        let wanted = text?.lowercased()
        let all = registry.profiles.flatMap { profile in
            profile.models.map { (profile: profile, model: $0) }
        }
        let rows = all.map { Self.row($0.model, of: $0.profile) }.filter { row in
            wanted.map { "\(row.brand) \(row.model) \(row.profile)".lowercased().contains($0) } ?? true
        }
        self.rows = rows.sorted { ($0.brand.lowercased(), $0.model) < ($1.brand.lowercased(), $1.model) }
            .uniqued { "\($0.brand) \($0.model) \($0.profile)" }
        profileCount = Set(self.rows.map(\.profile)).count
        modelCount = Set(self.rows.map { "\($0.brand) \($0.model)" }).count
    }

    /// The models for the terminal.
    var table: String {
        let cells = rows.map { [$0.brand, $0.model, $0.profile, $0.how, $0.reads] }
        let count = "\(modelCount) model\(modelCount == 1 ? "" : "s")"
        let lines = rows.isEmpty ? [] : TextTable(["BRAND", "MODEL", "PROFILE", "HOW", "READS"], cells).lines
        return (lines + [count]).joined(separator: "\n")
    }

    /// The models as a page in Markdown.
    var page: String {
        let lines = rows.map { row in
            let cells = [row.brand, row.model, row.reads, row.how, "`\(row.profile)`", row.tested]
            return "| " + cells.map { $0.replacingScalars("|", with: "\\|") }.joined(separator: " | ") + " |"
        }
        return """
            # Catalogue

            The \(modelCount) models that \(profileCount) of the included profiles recognise, as `gattherd profile models` lists
            them. Other devices that send the same formats work too. [Models](advertisements.md#models) explains how models are
            recognised; [Devices](devices.md#add-a-device) shows how to add one.

             - *advertisement*: the device is only listened to. *connection*: it is connected.
             - *active scan*: its name or its values are in the scan response.
             - *key*: its advertisements are encrypted, and need a `bind_key_file`.
             - *tested against*: the independent decoder, or the document, with which its tests agree.

            | brand | model | reads | how | profile | tested against |
            | --- | --- | --- | --- | --- | --- |
            \(lines.joined(separator: "\n"))
            """ + "\n"
    }

    private static func row(_ model: ModelDescriptor, of profile: any Profile) -> Row {
        let needs = [model.needsActiveScan ? "active scan" : nil, model.key.map { _ in "key" }].compactMap(\.self)
        let how = [profile.isForAdvertisements ? "advertisement" : "connection"] + needs
        return Row(
            brand: model.brand,
            model: model.model,
            reads: reads(model, of: profile),
            how: how.joined(separator: ", "),
            profile: profile.name,
            tested: ProfileTools.sources(of: profile).joined(separator: ", ")
        )
    }

    /// Returns the metrics of the streams that the model may have.
    private static func reads(_ model: ModelDescriptor, of profile: any Profile) -> String {
        let frames = profile.advertisements.enumerated().filter { model.mayHave($0.element) }.map(\.offset)
        let indices = profile.isForAdvertisements ? frames : Array(profile.streams.indices)
        let facts = ProfileFacts(profile)
        let names = indices.flatMap { facts.described($0) }.map(\.name).filter { !$0.hasSuffix("_reason") }
        let unique = names.uniqued { $0 }
        let shown = unique.prefix(maximumMetrics).map { $0.replacing("_", with: " ") }.joined(separator: ", ")
        return unique.count > maximumMetrics ? "\(shown) and \(unique.count - maximumMetrics) more" : shown
    }
}

extension Sequence {
    /// Returns the first of all elements with the same key, in order.
    fileprivate func uniqued(by key: (Element) -> String) -> [Element] {
        var seen: Set<String> = []
        return filter { seen.insert(key($0)).inserted }
    }
}
