import GattherdModel

extension DaemonStatus {
    /// The status as metrics.
    var metrics: [MetricFamily] {
        let parts = [[buildFamily], adapterMetrics, deviceMetrics, history.metrics, outputMetrics, [alertFamily]]
        return parts.flatMap(\.self) + (fleet?.metrics ?? [])
    }

    private var buildFamily: MetricFamily {
        let point = MetricFamily.Point(1, ["version": version])
        return MetricFamily("gattherd_build_info", .gauge, "Always 1; the label is the version", [point])
    }

    private var alertFamily: MetricFamily {
        let points = (alerts ?? []).map { MetricFamily.Point(1, ["alert": $0.alert, "device": $0.device]) }
        return MetricFamily("gattherd_alert", .gauge, "1 for each raised alert", points)
    }

    private var adapterMetrics: [MetricFamily] {
        func family(_ name: String, _ help: String, _ value: (Adapter) -> Int?) -> MetricFamily {
            let points = adapters.compactMap { adapter in
                value(adapter).map { value in
                    MetricFamily.Point(Double(value), ["adapter": adapter.address, "name": adapter.name])
                }
            }
            return MetricFamily("gattherd_adapter_" + name, .gauge, help, points)
        }
        return [
            MetricFamily("gattherd_adapters", .gauge, "Bluetooth adapters", adapters.count),
            family("powered", "1 when the adapter is on") { $0.powered ? 1 : 0 },
            family("discovering", "1 while the adapter scans") { $0.discovering ? 1 : 0 },
            family("links", "Links that are up, including those of other programs") { $0.links },
            family("slots", "Maximum number of links, once it is known") { $0.slots },
            family("waiting_devices", "Devices that wait for a free link") { $0.waiting },
            family("connecting", "Connection attempts in progress") { $0.connecting },
        ]
    }

    private var deviceMetrics: [MetricFamily] {
        func family(
            _ name: String,
            _ kind: MetricFamily.Kind,
            _ help: String,
            _ value: (Device) -> Double?
        ) -> MetricFamily {
            let points = devices.compactMap { device in
                value(device).map { MetricFamily.Point($0, ["device": device.device]) }
            }
            return MetricFamily("gattherd_device_" + name, kind, help, points)
        }
        func seconds(_ time: String?) -> Double? {
            time.flatMap { Timestamp(rfc3339: $0.utf8) }.map { Double($0.microseconds) / 1_000_000 }
        }
        return [
            stateFamily,
            family("online", .gauge, "1 while the device's readings are expected") { $0.isOnline ? 1 : 0 },
            family("state_change_timestamp_seconds", .gauge, "Time of the last state change, since 1970") {
                seconds($0.since)
            },
            family("failed_attempts", .gauge, "Failed attempts since the link was last ready") { Double($0.attempt) },
            family("rssi_dbm", .gauge, "Signal strength of the last advertisement") { $0.rssi.map(Double.init) },
            family("readings_total", .counter, "Readings since the start") { Double($0.readings) },
            family("rejects_total", .counter, "Payloads that could not be decoded") { Double($0.rejects) },
            family("last_reading_timestamp_seconds", .gauge, "Time of the newest reading, since 1970") {
                seconds($0.lastReading)
            },
        ]
    }

    private var outputMetrics: [MetricFamily] {
        func family(
            _ name: String,
            _ kind: MetricFamily.Kind,
            _ help: String,
            _ value: (Output) -> Double?
        ) -> MetricFamily {
            let points = outputs.compactMap { output in
                value(output).map { MetricFamily.Point($0, ["output": output.name]) }
            }
            return MetricFamily("gattherd_output_" + name, kind, help, points)
        }
        return [
            family("up", .gauge, "1 while the receiver can be reached") { $0.isUp ? 1 : 0 },
            family("backlog", .gauge, "Entries that the receiver has not acknowledged") { Double($0.backlog) },
            family("lag_seconds", .gauge, "Age of the oldest entry of the backlog") { $0.lag },
            family("delivered_total", .counter, "Entries that the receiver has acknowledged") { Double($0.delivered) },
            family("skipped_total", .counter, "Entries that are never delivered") { Double($0.skipped) },
            family("errors_total", .counter, "Failed attempts to connect or to deliver") { Double($0.errors) },
        ]
    }

    private var stateFamily: MetricFamily {
        let points = devices.flatMap { device in
            LinkState.allCases.map { state in
                let isCurrent = device.state == state.rawValue
                return MetricFamily.Point(isCurrent ? 1 : 0, ["device": device.device, "state": state.rawValue])
            }
        }
        return MetricFamily("gattherd_device_state", .gauge, "1 for the current state of the link", points)
    }
}

extension DaemonStatus.History {
    fileprivate var metrics: [MetricFamily] {
        [
            MetricFamily(
                "gattherd_history_writable",
                .gauge,
                "0 while history cannot be written",
                error == nil ? 1 : 0
            ),
            MetricFamily("gattherd_history_size_bytes", .gauge, "Size of the database without the WAL", size),
            MetricFamily("gattherd_history_newest_seq", .gauge, "Sequence number of the newest entry", seq),
            MetricFamily(
                "gattherd_history_undelivered_readings_total",
                .counter,
                "Readings deleted before they were delivered",
                undelivered
            ),
            MetricFamily(
                "gattherd_history_unstored_readings_total",
                .counter,
                "Readings delivered but not stored",
                unstored
            ),
        ]
    }
}

extension DaemonStatus.Fleet {
    fileprivate var metrics: [MetricFamily] {
        func family(_ name: String, _ help: String, _ label: String, _ counts: [String: UInt64]) -> MetricFamily {
            let points = counts.sorted { $0.key < $1.key }.map { MetricFamily.Point(Double($0.value), [label: $0.key]) }
            return MetricFamily("gattherd_lease_" + name, .counter, help, points)
        }
        return [
            MetricFamily("gattherd_leases_held", .gauge, "Devices that this gateway owns", held),
            MetricFamily(
                "gattherd_lease_claims_total",
                .counter,
                "Leases that this gateway got since the start",
                [.init(Double(claims))]
            ),
            family("handovers_total", "Devices that this gateway gave up or lost", "cause", handovers),
            family("refused_controls_total", "Controls refused because of leases", "reason", refusedControls),
            MetricFamily(
                "gattherd_lease_answer_age_seconds",
                .gauge,
                "Seconds since the centre answered and renewed leases",
                answerAge.map { [.init($0)] } ?? []
            ),
        ]
    }
}
