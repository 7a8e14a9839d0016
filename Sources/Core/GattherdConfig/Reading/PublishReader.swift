/// Reads sections `publish`.
enum PublishReader {
    /// Reads the section of a device, which may have settings for each stream.
    static func device(_ section: SectionReader) -> DevicePublishSettings {
        var settings = DevicePublishSettings()
        settings.all = self.settings(section)
        section.section("streams") { streams in
            for name in streams.names {
                streams.section(name.value) { settings.streams[name] = self.settings($0) }
            }
        }
        return settings
    }

    static func settings(_ section: SectionReader) -> PublishSettings {
        var settings = PublishSettings()
        settings.isOnChange = section.value("on_change", .boolean)?.value
        readDeadband(section, &settings)
        settings.minimumInterval = section.value("min_interval", .duration(interval))?.value
        settings.heartbeat = section.value("heartbeat", .duration(interval))?.value
        settings.qos = section.value("qos", ConfigGrammar<PublishSettings.QoS>.choice("a quality of service"))?.value
        settings.retains = section.value("retain", .boolean)?.value
        settings.hasScalars = section.value("scalar", .boolean)?.value
        settings.expiry = section.value("expiry", .duration(.seconds(1) ... .seconds(365 * 86_400)))?.value
        settings.batch = batch(section)
        check(section, settings)
        return settings
    }

    private static func batch(_ section: SectionReader) -> Duration? {
        guard !section.isWord("batch", "off") else { return .zero }
        return section.value("batch", .duration(.milliseconds(10) ... .seconds(60)))?.value
    }

    private static let interval: ClosedRange<Duration> = .milliseconds(1) ... .seconds(30 * 86_400)

    /// Reads one deadband for all metrics, or a mapping of metrics to deadbands.
    private static func readDeadband(_ section: SectionReader, _ settings: inout PublishSettings) {
        guard section.isMapping("deadband") else {
            settings.deadband = section.value("deadband", .magnitude)?.value
            return
        }
        section.section("deadband") { metrics in
            for name in metrics.names { settings.deadbands[name] = metrics.value(name.value, .magnitude)?.value }
        }
    }

    private static func check(_ section: SectionReader, _ settings: PublishSettings) {
        if settings.isOnChange == false, let place = section.place(of: "deadband") {
            section.report(
                .conflict("'deadband' has no effect with 'on_change: false'; remove one of the two"),
                at: place
            )
        }
        if let minimum = settings.minimumInterval, let heartbeat = settings.heartbeat, heartbeat < minimum,
            let place = section.place(of: "heartbeat")
        {
            section.report(.conflict("'heartbeat' must be at least 'min_interval'"), at: place)
        }
    }
}
