package import GattherdConfig
package import GattherdModel
package import GattherdOutputs

/// The section `lines`.
package struct LinesSettings: Hashable, Sendable {
    /// A file, or a named pipe that exists.
    package var path: Located<String>
    /// The size at which a file is rotated, in bytes; `nil`: never.
    package var maxSize: UInt64?
    /// The number of rotated files that are kept.
    package var keep = 5
    /// True if lines are on the disk before their entries count as delivered.
    package var isSynced = true

    package init(path: Located<String>) {
        self.path = path
    }
}

/// The output `lines`.
package enum LinesOutput: OutputDefinition {
    package static let section = "lines"
    /// The time for which entries gather: short, because people and programs follow files live.
    private static let interval = Duration.milliseconds(250)

    package static func read(_ section: SectionReader, _ environment: OutputEnvironment) -> LinesSettings? {
        let path = section.required("path", .path).map { environment.resolve($0) }
        let maxSize = section.value("max_size", .size)?.value
        let keep = section.value("keep", .integer(1...1000))?.value
        let isSynced = section.value("fsync", .boolean)?.value
        section.require("max_size", with: "keep", in: "'lines'")
        guard let path else { return nil }
        var settings = LinesSettings(path: path)
        settings.maxSize = maxSize
        settings.keep = keep ?? settings.keep
        settings.isSynced = isSynced ?? settings.isSynced
        return settings
    }

    package static let descriptions: [String: ConfigDescription] = [
        "": ConfigDescription(
            "JSON lines in a file or a named pipe: readings, events, rejects and clock corrections."
        ),
        "path": ConfigDescription(
            "The file, or a named pipe, which must exist.",
            example: "/var/lib/gattherd/readings.jsonl"
        ),
        "max_size": ConfigDescription(
            "The size at which the file becomes readings.jsonl.1, that one readings.jsonl.2 and so on.",
            example: "100MiB",
            otherwise: "never"
        ),
        "keep": ConfigDescription(
            "The number of renamed files that stay; needs `max_size`.",
            example: "5",
            otherwise: "5"
        ),
        "fsync": ConfigDescription("True if lines are on the disk before they count as delivered.", default: "true"),
    ]

    package static func content(_ settings: LinesSettings) -> JournalConsumerOptions.Content { .everything }

    package static func make(_ settings: LinesSettings, _ context: OutputContext) throws(OutputError) -> any Output {
        var options = BatchOptions()
        options.interval = interval
        return BatchOutput(context, target: settings.path.value, sink: LinesSink(settings), options: options)
    }

    package static func files(_ settings: LinesSettings) -> [NamedFile] { [NamedFile(settings.path, .destination)] }

    /// A path that cannot be used is a warning: the daemon runs without it and tries again.
    package static func findings(_ settings: LinesSettings) -> [ConfigError] {
        guard let problem = LinesPath(settings.path.value).problem else { return [] }
        guard let place = settings.path.place else { return [] }
        return [ConfigError(.file(problem), at: place, severity: .warning)]
    }
}
