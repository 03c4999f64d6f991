"""Explains Kafka's exceptions."""

from __future__ import annotations

import re
from typing import NamedTuple


class Words(NamedTuple):
    """An explained fault: the fact, its cause, and what to do."""

    fact: str
    detail: str = ""
    hint: str = ""
    code: str = ""


_SERVERS = "is a broker listening there, and does kafka.security.protocol match it?"
# A pattern of an exception's text → its explanation; {0}, {1} are the pattern's groups. The first match
# is used.
_EXPLANATIONS: tuple[tuple[str, Words], ...] = (
    (
        r"Topic (\S+) not present in metadata after \d+ ms\.\s+Caused by: \S*UnknownTopicOrPartition",
        Words(
            "Kafka has no topic {0} to write to",
            "its brokers do not create topics automatically",
            "create it with Kafka's tools, or name another topic: OPTIONS (topic '…')",
        ),
    ),
    (
        r"Topic (\S+) not present in metadata after (\d+)000 ms",
        Words("Kafka did not answer within {1} s", "while writing to the topic {0}", _SERVERS),
    ),
    (
        r"UnknownTopicOrPartitionException",
        Words(
            "a topic that the query reads does not exist",
            "its name may be misspelt, or it has been deleted",
            "check subscribe or assign; START QUERY resumes the query when the topic exists",
        ),
    ),
    (
        r"InvalidTopicException",
        Words("Kafka does not allow this topic name", "letters, digits, '.', '_' and '-' only"),
    ),
    (
        r"Reason: Partition (\S+)-(\d+) offset was changed from (\d+) to (\d+)",
        Words(
            "the next messages are no longer in Kafka",
            "partition {1} of {0} should be read from offset {2}, but ends at {3}: it was deleted and created"
            " again, or startingOffsets is beyond its end",
            "OPTIONS (failOnDataLoss false) continues with the existing messages; the others stay lost",
        ),
    ),
    (
        r"Could not read records in offset \[(\d+), (\d+)\) for topic partition (\S+)-(\d+)",
        Words(
            "the next messages are no longer in Kafka",
            "partition {3} of {2} no longer has offset {0}: older than the topic keeps",
            "OPTIONS (failOnDataLoss false) continues with the existing messages; the others stay lost",
        ),
    ),
    (
        r"Some data may have been lost because they are not available in Kafka any more[\s\S]*?"
        r"Reason: ([^\n]+)",
        Words(
            "the next messages are no longer in Kafka",
            "{0}",
            "OPTIONS (failOnDataLoss false) continues with the existing messages; the others stay lost",
        ),
    ),
    (
        r"SaslAuthenticationException: ([^\n]+)",
        Words("Kafka refuses the login", "{0}", "check kafka.sasl.mechanism and kafka.sasl.jaas.config"),
    ),
    (
        r"SslAuthenticationException: ([^\n]+)",
        Words("no TLS connection to Kafka", "{0}", "check the options kafka.ssl.…"),
    ),
    (
        r"((?:Topic|Group|Cluster|TransactionalId)AuthorizationException): ([^\n]+)",
        Words("Kafka does not allow it", "{1}", "the login needs this permission from an administrator"),
    ),
    (
        r"Could not find a 'KafkaClient' entry in the JAAS configuration",
        Words(
            "Kafka requires a login",
            "no user and password are given",
            "OPTIONS ('kafka.sasl.jaas.config' '…')",
        ),
    ),
    (
        r"Invalid url in bootstrap\.servers: ([^\n]+)",
        Words("{0} is not the address of a broker", "", "host:port"),
    ),
    (
        r"No resolvable bootstrap urls given in bootstrap\.servers",
        Words("no host of kafka.bootstrap.servers can be resolved", "", "check their names"),
    ),
    (
        r"ConfigException: Invalid value (\S*) for configuration (\S+): ([^\n]+)",
        Words("the option kafka.{1} cannot be {0}", "{2}"),
    ),
    (
        r"RecordTooLargeException: The message is (\d+) bytes when serialized which is larger than (\d+)",
        Words(
            "a message is too large for Kafka",
            "it has {0} bytes; the limit is {1}",
            "OPTIONS ('kafka.max.request.size' '…'); the topic must allow it, too",
        ),
    ),
    (
        r"kafka\S*\.TimeoutException: (Timed out waiting for a node assignment|"
        r"[^\n]*(listNodes|describeTopics|listOffsets))",
        Words("Kafka does not answer", "", _SERVERS),
    ),
    (
        r"kafka\S*\.TimeoutException: ([^\n]+)",
        Words("Kafka did not answer in time", "{0}", "is the broker running?"),
    ),
)


def in_plain_words(text: str) -> Words | None:
    """The explanation of an exception of Kafka; None for another. text: its text, including its class."""
    if "afka" not in text:
        return None
    for pattern, words in _EXPLANATIONS:
        match = re.search(pattern, text)
        if match:
            return Words(*(w.format(*match.groups()) for w in words))
    return None
